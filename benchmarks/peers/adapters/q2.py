# mypy: disable-error-code="import-not-found"
"""django-q2 with its ORM broker: ``qcluster``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.core.management import call_command

from benchmarks.peers.adapters import handlers
from benchmarks.peers.adapters.django_project import DjangoAdapter, configure
from benchmarks.peers.adapters.protocol import Place


class Adapter(DjangoAdapter):
    """Names its functions by their path; has no bulk call. A row stays until its result is acknowledged."""

    LEFT = "SELECT count(*) FROM django_q_ormq"

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        configure(place, ["django_q"], Q_CLUSTER={"name": "bench", "orm": "default", **options.get("cluster", {})})
        self._async_task = import_module("django_q.tasks").async_task  # not before the apps are ready

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._async_task(f"{handlers.__name__}.{job}", **payload)

    def work(self) -> None:
        call_command("qcluster")
