# mypy: disable-error-code="import-not-found"
"""django-tasks-db: ``db_worker``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.core.management import call_command

from benchmarks.peers.adapters.django_project import DjangoAdapter, configure
from benchmarks.peers.adapters.protocol import Place


class Adapter(DjangoAdapter):
    """A backend of Django's tasks; has no bulk call."""

    LEFT = "SELECT count(*) FROM django_tasks_database_dbtaskresult WHERE status IN ('READY', 'RUNNING')"

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        configure(place, ["django_tasks_db"], TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}})
        self._tasks = import_module("benchmarks.peers.adapters.django_tasks")  # not before the apps are ready

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        getattr(self._tasks, job).enqueue(**payload)

    def work(self) -> None:
        call_command("db_worker", **self.options.get("command", {}))
