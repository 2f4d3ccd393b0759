"""The settings that startproject makes, with the queue and the test's database."""

from __future__ import annotations

import json
import os

SECRET_KEY = "for tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "jobqueue", "tests.documented.shelf"]
DATABASES = {"default": json.loads(os.environ["JOBQUEUE_TEST_DATABASE"])}
