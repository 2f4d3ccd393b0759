"""Settings of a worker that runs tasks of ``django.tasks``."""

from __future__ import annotations

import django

from tests.worker import settings as plain

SECRET_KEY = plain.SECRET_KEY
USE_TZ = plain.USE_TZ
DEFAULT_AUTO_FIELD = plain.DEFAULT_AUTO_FIELD
DATABASES = plain.DATABASES
JOBQUEUE = plain.JOBQUEUE
CONSTANTS = plain.CONSTANTS

_BACKPORT = ["django_tasks"] if django.VERSION < (6,) else []
INSTALLED_APPS = [*plain.INSTALLED_APPS, *_BACKPORT, "jobqueue.contrib.django_tasks", "tests.contrib.parcels"]
TASKS = {
    alias: {"BACKEND": "jobqueue.contrib.django_tasks.JobQueueBackend", "QUEUES": []} for alias in ("default", "graded")
}
