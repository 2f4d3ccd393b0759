"""This queue as a backend of Django's tasks."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from typing import Any

from benchmarks import databases
from benchmarks.peers.adapters import ours, protocol

_BACKEND = "jobqueue.contrib.django_tasks.JobQueueBackend"


class Adapter(ours.Adapter):
    """The tasks that the other backends of Django's tasks run; has no bulk call."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        protocol.Adapter.__init__(self, place, options)
        apps = ("django.contrib.contenttypes", "jobqueue.contrib.django_tasks")
        modules = {"modules": ["benchmarks.peers.adapters.django_tasks"]}
        databases.Place(**asdict(place)).configure(apps, TASKS={"default": {"BACKEND": _BACKEND, "OPTIONS": modules}})
        self._tasks = import_module("benchmarks.peers.adapters.django_tasks")  # not before the apps are ready

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        getattr(self._tasks, job).enqueue(**payload)

    enqueue_many = protocol.Adapter.enqueue_many
