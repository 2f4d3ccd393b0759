"""``reconcile``: a check that the effects of completed jobs are still in place."""

from __future__ import annotations

import argparse
from typing import Any

from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING
from jobqueue.cli.values import counted, plain
from jobqueue.handlers.registry import registry
from jobqueue.reconcile import Discrepancy, Summary, reconcile


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type", action="append", default=[], metavar="TYPE", dest="types", help="Only this job type; repeatable."
    )


def _run(options: dict[str, Any], console: Console) -> int:
    found: list[dict[str, Any]] = []

    def tell(one: Discrepancy) -> None:
        if console.as_json:
            found.append(plain(one))
        else:
            console.line(f"{one.job_id}  {one.job_type}  {one.text}", console.style.WARNING)

    if not registry.reconcilers:
        console.say("No handler has a reconciler.")
    summary = reconcile(tell, options["types"], console.progress)
    if console.as_json:
        console.document({**plain(summary), "discrepancies": found})
    else:
        console.say(_told(summary), console.style.WARNING if summary.differing or summary.failed else None)
    return WARNING if summary.differing or summary.failed else OK


def _told(summary: Summary) -> str:
    failed = f", {counted(summary.failed)} could not be compared" if summary.failed else ""
    return f"{counted(summary.compared)} compared, {counted(summary.differing)} with a discrepancy{failed}."


RECONCILE = Subcommand(
    "reconcile",
    "check that the effects of completed jobs are still in place",
    """\
Differences are only reported. If several jobs are about the same thing, such as a file, only the last is compared.

examples:
  manage.py jobqueue reconcile
  manage.py jobqueue reconcile --type create_file --type delete_file --json

exit codes:
  0  no discrepancies
  1  discrepancies, or jobs that could not be compared
  2  invalid arguments
  3  nothing was compared: an unknown type, a type without a reconciler, or no database
""",
    _add,
    _run,
)
