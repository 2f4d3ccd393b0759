"""The names of django-tasks-db, mapped to this queue, so that its tests can be imported and run."""

from __future__ import annotations

import logging
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace

from django.conf import settings
from django.core import management
from django.core.management import BaseCommand
from django.core.signals import setting_changed
from django.db import models, transaction
from django.db.models import Q
from django.test import SimpleTestCase, TransactionTestCase

from jobqueue import backends
from jobqueue.contrib.django_tasks.tasks_api import task_backends
from jobqueue.ids import new_id
from jobqueue.models import Job
from jobqueue.records import Draft
from tests.suites.hosts import StoringHost, drain

#: Columns of django-tasks-db by the names of this queue.
COLUMNS = {"run_after": "scheduled_at", "queue_name": "queue", "task_path": "type"}


class DatabaseBackend(StoringHost):
    """This queue under the name of the other's backend."""


class Rows(models.QuerySet):
    """The rows of a queue with the methods that the other's manager has."""

    def ready(self):
        return self.filter(status="queued", scheduled_at__lte=backends.current().now())

    def successful(self):
        return self.filter(status="completed")

    def failed(self):
        return self.filter(Q(status="failed") | Q(status="dead_letter"))

    def update(self, **values):
        return super().update(**{COLUMNS.get(name, name): value for name, value in values.items()})

    def create(self, task_path, **_):
        (receipt,) = backends.current().enqueue([Draft(id=new_id(), type=task_path, payload="{}")])
        return self.get(id=receipt.id)


class DBTaskResult(Job):
    """A job in the place of a row of django-tasks-db."""

    objects = Rows.as_manager()

    class Meta:
        proxy = True
        app_label = "jobqueue"
        ordering = ("priority", "scheduled_at", "id")

    @property
    def task_result(self):
        return task_backends["default"].get_result(self.id)

    @property
    def task(self):
        return self.task_result.task


class Worker(BaseCommand):
    """A turn of a worker in the place of ``db_worker``."""

    def add_arguments(self, parser):
        for name in ("batch", "interval", "startup_delay", "worker_id", "backend_name", "exclude_queues", "reload"):
            parser.add_argument(f"--{name}")
        parser.add_argument("--queue_name", default="default")
        parser.add_argument("--max_tasks", type=int)

    def handle(self, *, queue_name, max_tasks, **_):
        drain(max_tasks, None if queue_name == "*" else frozenset(queue_name.split(",")))


def install():
    """Make the names importable, and let no test count the statements of the other's tables."""
    _module("django_tasks_db", DatabaseBackend=DatabaseBackend, compat=SimpleNamespace())
    _module("django_tasks_db.admin", DBTaskResultAdmin=None)
    _module("django_tasks_db.models", DBTaskResult=DBTaskResult, get_date_max=lambda: datetime(9999, 1, 1, tzinfo=UTC))
    _module("django_tasks_db.utils", exclusive_transaction=lambda *_: transaction.atomic(), normalize_uuid=str)
    for name in ("django_tasks_db.management", "django_tasks_db.management.commands"):
        _module(name)
    _module("django_tasks_db.management.commands.prune_db_task_results", logger=logging.getLogger("django_tasks_db"))
    known = management.get_commands
    management.get_commands = lambda: {**known(), "db_worker": Worker()}
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default", "queue-1"]}}
    setting_changed.send(None, setting="TASKS", value=settings.TASKS, enter=True)
    for case in (SimpleTestCase, TransactionTestCase):
        case.assertNumQueries = lambda *_, **__: nullcontext()


def _module(name, **names):
    made = ModuleType(name)
    made.__path__ = []
    vars(made).update(names)
    sys.modules[name] = made
