"""The discovery of every ``worker_jobs…`` module of the test app, and shorter periods for tests."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from django.conf import settings

from tests import app

for module in iter_modules(app.__path__, "tests.app."):
    if module.name.startswith("tests.app.worker_jobs"):
        import_module(module.name)

for path, value in getattr(settings, "CONSTANTS", {}).items():  # those of a worker that a test started, nobody else's
    place, _, name = path.rpartition(".")
    setattr(import_module(place), name, value)
