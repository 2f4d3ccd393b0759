"""Settings of the workers that tests start, with the test's database and further settings."""

from __future__ import annotations

import json
import os

_given = json.loads(os.environ["JOBQUEUE_TEST_SETTINGS"])

SECRET_KEY = "for tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "jobqueue",
    "tests.app",
    "tests.worker",
    *_given["apps"],
]
DATABASES = {"default": _given["database"], **_given.get("databases", {})}
#: Rows of tests may have ended on any day, and stay.
JOBQUEUE = {"RETENTION": []} | _given["jobqueue"]
#: Module constants to be replaced, by their dotted paths.
CONSTANTS = _given["constants"]
