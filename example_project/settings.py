"""Settings of the example project: SQLite by default, Postgres where ``EXAMPLE_POSTGRES`` names a database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = "only for the example: nothing here is secret"  # noqa: S105
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "example_project.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "jobqueue",
    "example_project.shop",
]

SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": BASE_DIR / "example.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}
POSTGRES: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": os.environ.get("EXAMPLE_POSTGRES", ""),
}

DATABASES = {"default": POSTGRES if POSTGRES["NAME"] else SQLITE}
