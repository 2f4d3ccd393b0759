"""The discovery of every ``worker_jobs…`` module of the test app, and shorter periods for tests."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from django.conf import settings

from tests import app
from tests.constants import change

for module in iter_modules(app.__path__, "tests.app."):
    if module.name.startswith("tests.app.worker_jobs"):
        import_module(module.name)

change(getattr(settings, "CONSTANTS", {}))  # those of a worker that a test started, nobody else's
