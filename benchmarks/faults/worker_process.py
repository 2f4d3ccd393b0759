"""A worker of the laboratory: ``runworker`` with its handlers, configured by one argument."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from django.core.management import call_command

from benchmarks.databases import Place
from benchmarks.faults.place import APPS


def main() -> None:
    """Run one worker until it is stopped."""
    asked = json.loads(sys.argv[1])
    Place(**asked["place"]).configure((*APPS, *asked["apps"]))
    import_module("benchmarks.faults.jobs")  # not before the apps are ready
    call_command("runworker", **{"verbosity": 1} | asked["options"])


if __name__ == "__main__":
    main()
