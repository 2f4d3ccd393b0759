"""The project's settings, with the laboratory's database from the environment."""

from __future__ import annotations

import json
import os
from importlib import import_module

_given = json.loads(os.environ["JOBQUEUE_FAULTS_PROJECT"])

ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": _given["database"]}
DEBUG = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "jobqueue", "benchmarks.faults.project"]
JOBQUEUE = {"RUNTIME_DIR": _given["runtime"]}
ROOT_URLCONF = "benchmarks.faults.project.urls"
SECRET_KEY = "for benchmarks"  # noqa: S105 - nothing here is secret
USE_TZ = True

import_module(_given["touched"])
