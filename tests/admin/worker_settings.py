"""Settings of a worker that carries out operators' orders, with the admin and the application's database."""

from __future__ import annotations

import json
import os

from tests.worker import settings as plain

_given = json.loads(os.environ["JOBQUEUE_TEST_APPLICATION"])

SECRET_KEY = plain.SECRET_KEY
USE_TZ = plain.USE_TZ
DEFAULT_AUTO_FIELD = plain.DEFAULT_AUTO_FIELD
JOBQUEUE = plain.JOBQUEUE
CONSTANTS = plain.CONSTANTS
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.sessions",
    "django.contrib.messages",
    *plain.INSTALLED_APPS,
]
DATABASES = {"default": _given["database"], plain.JOBQUEUE["DATABASE"]: plain.DATABASES["default"]}
