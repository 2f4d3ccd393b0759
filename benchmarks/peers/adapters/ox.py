# mypy: disable-error-code="import-not-found"
"""django-ox: ``ox_worker``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.core.management import call_command

from benchmarks.peers.adapters.django_project import DjangoAdapter, configure
from benchmarks.peers.adapters.protocol import Place


class Adapter(DjangoAdapter):
    """A backend of Django's tasks; has a bulk call of its own."""

    LEFT = "SELECT count(*) FROM django_ox_oxtask WHERE status IN ('READY', 'RUNNING')"

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        configure(place, ["django_ox"], TASKS={"default": {"BACKEND": "django_ox.backend.OxBackend"}})
        self._tasks = import_module("benchmarks.peers.adapters.django_tasks")  # not before the apps are ready
        self._bulk = import_module("django_ox.bulk")

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        getattr(self._tasks, job).enqueue(**payload)

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        self._bulk.enqueue_many(getattr(self._tasks, job), [((), payload) for payload in payloads])

    def work(self) -> None:
        call_command("ox_worker", **self.options.get("command", {}))
