"""``relay``: the transfer of jobs to the shared database, once or continuously."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from jobqueue import conf
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.commands.worker import relay
from jobqueue.cli.console import Console
from jobqueue.cli.exits import failure
from jobqueue.worker.options import WorkerOptions


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--once", action="store_true", help="End when no job waits, or the shared database is out of reach."
    )


def _run(given: dict[str, Any], console: Console) -> int:
    if conf.get("RELAY_TO") is None:
        raise failure("Nothing to relay: set JOBQUEUE['RELAY_TO'] to the alias of the shared database.")
    return relay(replace(WorkerOptions(), drain=given["once"]), console)


RELAY = Subcommand(
    "relay",
    "move waiting jobs to the shared database, where other workers run them",
    """\
Requires JOBQUEUE["RELAY_TO"]. If that is set, runworker does the same: it relays jobs instead of running them. While
the shared database is out of reach, it tries again at intervals of up to 30 seconds.

examples:
  manage.py jobqueue relay
  manage.py jobqueue relay --once

exit codes:
  0  stopped by a signal; with --once: no more jobs wait
  1  with --once: jobs still wait, and the log says why
  2  invalid arguments
  3  nothing was done: RELAY_TO is not set
""",
    _add,
    _run,
)
