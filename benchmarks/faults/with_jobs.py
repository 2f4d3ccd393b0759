"""A worker of the laboratory with additional handlers, from the module named first."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from django.core.management import call_command

from benchmarks.databases import Place
from benchmarks.faults.place import APPS


def with_jobs(module: str) -> tuple[str, ...]:
    """Return the command prefix of a worker with these handlers."""
    return (sys.executable, "-m", "benchmarks.faults.with_jobs", module)


def main() -> None:
    """Run one worker until it is stopped. Arguments of other prefixes are skipped."""
    module, asked = sys.argv[1], json.loads(sys.argv[-1])
    Place(**asked["place"]).configure(APPS)
    import_module("benchmarks.faults.jobs")
    import_module(module)
    call_command("runworker", **{"verbosity": 1} | asked["options"])


if __name__ == "__main__":
    main()
