"""Settings for the tests of others: this queue on a database in memory."""

from __future__ import annotations

import importlib.util

import django

SECRET_KEY = "for tests"
USE_TZ = True
ROOT_URLCONF = "tests.urls"  # of django-tasks
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {"default": {"BACKEND": "jobqueue.contrib.django_tasks.JobQueueBackend", "QUEUES": []}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "jobqueue", "jobqueue.contrib.django_tasks"]
if django.VERSION < (6,) and importlib.util.find_spec("django_tasks"):
    INSTALLED_APPS.append("django_tasks")
