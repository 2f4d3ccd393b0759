"""This queue: ``runworker`` with the given options."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from typing import Any

from django.core.management import call_command
from django.db import connection

from benchmarks import databases
from benchmarks.peers.adapters import protocol

_LEFT = "SELECT count(*) FROM job_queue WHERE status IN ('queued', 'in_progress')"


class Adapter(protocol.Adapter):
    """Each job is validated by pydantic and has a key; whether coroutines run them, the options say."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        databases.Place(**asdict(place)).configure()
        self._jobs = import_module("benchmarks.peers.adapters.our_jobs")  # not before the apps are ready
        self._suffix = "_soon" if options.get("coroutines") else ""
        self._count = 0

    def prepare(self) -> None:
        call_command("migrate", verbosity=0)

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._count += 1
        handler = getattr(self._jobs, job + self._suffix).using(idempotency_key=f"{job}-{self._count}")
        handler.enqueue(self._payload(job, payload))

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        handler = getattr(self._jobs, job + self._suffix)
        handler.enqueue_many([self._payload(job, payload) for payload in payloads])

    def _payload(self, job: str, payload: dict[str, Any]) -> Any:
        model = self._jobs.Stamp if job == "stamp" else self._jobs.Resize
        return model(**payload)

    def left(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(_LEFT)
            return int(cursor.fetchone()[0])

    def work(self) -> None:
        call_command("runworker", **self.options.get("command", {}))
