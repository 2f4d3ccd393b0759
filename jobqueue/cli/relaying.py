"""``relay``: bring the jobs that wait here to the shared database, once or until told to stop."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from jobqueue import conf
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import failure
from jobqueue.cli.worker import relay
from jobqueue.worker.options import WorkerOptions


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="End when nothing waits, or the shared database is lost.")


def _run(given: dict[str, Any], console: Console) -> int:
    if conf.get("RELAY_TO") is None:
        raise failure("Nothing is relayed: set JOBQUEUE['RELAY_TO'] to the alias of the shared database.")
    return relay(replace(WorkerOptions(), drain=given["once"]), console)


RELAY = Subcommand(
    "relay",
    "bring the jobs that wait here to the shared database, where others run them",
    """\
Needs JOBQUEUE["RELAY_TO"]. With that set, runworker does the same: it runs no jobs, and relays them. While the
shared database is out of reach, it tries again after pauses of up to 30 seconds.

examples:
  manage.py jobqueue relay
  manage.py jobqueue relay --once

exit codes:
  0  told to stop; with --once: nothing waits any more
  1  with --once: jobs still wait, and the log says why
  2  the command could not be read
  3  nothing was done, for it is not known where to relay to
""",
    _add,
    _run,
)
