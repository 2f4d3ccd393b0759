# mypy: disable-error-code="import-not-found"
"""dj-queue: ``dj_queue``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.core.management import call_command

from benchmarks.peers.adapters.django_project import DjangoAdapter, configure
from benchmarks.peers.adapters.protocol import Place


class Adapter(DjangoAdapter):
    """A backend of Django's tasks; has a bulk call of its own."""

    LEFT = "SELECT count(*) FROM dj_queue_jobs WHERE finished_at IS NULL"

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        backend = {"BACKEND": "dj_queue.backend.DjQueueBackend", "QUEUES": [], "OPTIONS": options.get("backend", {})}
        configure(place, ["dj_queue"], TASKS={"default": backend})
        self._tasks = import_module("benchmarks.peers.adapters.django_tasks")  # not before the apps are ready

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        getattr(self._tasks, job).enqueue(**payload)

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        task = getattr(self._tasks, job)
        task.get_backend().enqueue_all([(task, [], payload) for payload in payloads])

    def work(self) -> None:
        call_command("dj_queue", **self.options.get("command", {}))
