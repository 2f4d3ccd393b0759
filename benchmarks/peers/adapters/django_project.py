# mypy: disable-error-code="import-not-found"
"""The minimal Django project of the peers that need one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from benchmarks.peers.adapters import protocol
from benchmarks.peers.adapters.protocol import Place


def configure(place: Place, apps: Sequence[str], **others: Any) -> None:
    """Make this process a Django project on the store of a turn."""
    settings.configure(
        DATABASES={"default": place.database},
        DEBUG=False,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=["django.contrib.contenttypes", *apps],
        SECRET_KEY="for benchmarks",  # noqa: S106 - nothing here is secret
        USE_TZ=True,
        **others,
    )
    django.setup()


class DjangoAdapter(protocol.Adapter):
    """A queue that keeps its jobs in Django's own database."""

    #: How the store counts what is queued or running.
    LEFT = ""

    def prepare(self) -> None:
        call_command("migrate", verbosity=0, stdout=io.StringIO())

    def analyse(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def left(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(self.LEFT)
            return int(cursor.fetchone()[0])
