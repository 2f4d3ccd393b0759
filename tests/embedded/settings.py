"""Settings of the web processes that tests start, with an embedded worker."""

from __future__ import annotations

import os
from importlib import import_module

from tests.worker.settings import *  # noqa: F403

DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "tests.embedded.urls"
MIDDLEWARE = ["jobqueue.middleware.embedded_worker"]

if "JOBQUEUE_TEST_TOUCHED" in os.environ:  # a module of the test's own, that it may touch
    import_module(os.environ["JOBQUEUE_TEST_TOUCHED"])
