"""Settings of a worker that sends e-mail to the test's server."""

from __future__ import annotations

import os

import django

from tests.worker import settings as plain

SECRET_KEY = plain.SECRET_KEY
USE_TZ = plain.USE_TZ
DEFAULT_AUTO_FIELD = plain.DEFAULT_AUTO_FIELD
INSTALLED_APPS = plain.INSTALLED_APPS
DATABASES = plain.DATABASES
JOBQUEUE = plain.JOBQUEUE
CONSTANTS = plain.CONSTANTS

_PORT = int(os.environ["JOBQUEUE_TEST_SMTP"])
if django.VERSION >= (6, 1):
    MAILERS = {
        "default": {"BACKEND": "jobqueue.contrib.email.EmailBackend"},
        "direct": {
            "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "OPTIONS": {"host": "127.0.0.1", "port": _PORT},
        },
    }
    JOBQUEUE = JOBQUEUE | {"EMAIL_VIA": "direct"}
else:
    EMAIL_BACKEND = "jobqueue.contrib.email.EmailBackend"
    EMAIL_HOST, EMAIL_PORT = "127.0.0.1", _PORT
