"""A worker as a user starts it, ``runworker``, on the database of a run, configured by one argument."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from importlib import import_module

from django.core.management import call_command

#: What most projects have beside the queue; it counts where memory is measured.
USUAL_APPS = (
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
)


def main() -> None:
    """Run one worker until it is stopped."""
    asked = json.loads(sys.argv[1])
    if asked["place"]["vendor"] == "sqlite":
        sys.modules["psycopg"] = None  # type: ignore[assignment]  # as if not installed: it takes 10 MB
    databases = import_module("benchmarks.databases")
    databases.Place(**asked["place"]).configure(USUAL_APPS)
    import_module("benchmarks.jobs")  # not before the apps are ready
    for name, value in asked["constants"].items():
        module, _, constant = name.rpartition(".")
        setattr(import_module(module), constant, value)
    if asked.get("ahead"):
        _shift(asked["ahead"])
    call_command("runworker", **{"verbosity": 0} | asked["options"])


def _shift(seconds: float) -> None:
    """Set the clock of this worker ahead."""
    system = import_module("jobqueue.clock").SYSTEM
    read = system.now
    system.now = lambda: read() + timedelta(seconds=seconds)


if __name__ == "__main__":
    main()
