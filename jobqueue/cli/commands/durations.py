"""``durations``: how long jobs wait and run, by type."""

from __future__ import annotations

import argparse
from math import inf
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand, number
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.hints import about_type
from jobqueue.cli.values import plain
from jobqueue.observe.metrics import WINDOWS
from jobqueue.observe.questions.durations import TypeDurations, durations

_COLUMNS = ("type", "attempts", "wait_p50", "wait_p95", "wait_p99", "run_p50", "run_p95", "run_p99")
#: The units of durations, their lengths, and below which duration they are used.
_UNITS = (("ms", 0.001, 1.0), ("s", 1.0, 120.0), ("min", 60.0, 7_200.0), ("h", 3_600.0, inf))


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add the option for the window that ends now."""
    parser.add_argument("--window", choices=WINDOWS, default="hour", help="The last hour, day or week. Default: hour.")


def _add(parser: argparse.ArgumentParser) -> None:
    add_window(parser)
    parser.add_argument("--type", metavar="TYPE", help="Only this job type.")
    parser.add_argument(
        "--limit", type=number, default=10, metavar="N", help="Show the N types with the most attempts. Default: 10."
    )


def _run(options: dict[str, Any], console: Console) -> int:
    found = durations(current(), WINDOWS[options["window"]], options["limit"], options["type"])
    if console.as_json:
        console.document({"window": options["window"], "types": [_document(one) for one in found]})
    elif found:
        console.table(_COLUMNS, [_row(one) for one in found])
    else:
        console.say(f"No attempt has ended in the last {options['window']}.")
        for hint in about_type(options["type"]) if options["type"] else ():
            console.say(hint)
    return OK


def _document(one: TypeDurations) -> dict[str, Any]:
    waited, ran = plain(one.waited), plain(one.ran)
    return {"type": one.type, "attempts": one.attempts, "waited": waited, "ran": ran | {"mean": one.mean_ran}}


def _row(one: TypeDurations) -> list[str]:
    return [one.type, f"{one.attempts:,}", *map(seconds, (*one.waited, *one.ran))]


def seconds(value: float | None) -> str:
    """Format a duration with two or three digits: ``1.2 ms``, ``350 ms``, ``4.1 s``, ``12 min``, ``3.5 h``."""
    if value is None:
        return "-"
    unit, size = next(one[:2] for one in _UNITS if value < one[2])
    units = value / size
    return f"{units:.0f} {unit}" if units >= 10 or not value else f"{units:.1f} {unit}"


DURATIONS = Subcommand(
    "durations",
    "show how long jobs wait and run, by type",
    """\
WAIT is the time from when a job is due until it begins, and RUN the time that an attempt takes, successful or not. Half
of the jobs took at most P50, and 95 % at most P95. Percentiles are within 10 %. Workers store these metrics every ten
seconds, so the command reads no jobs. In JSON, durations are seconds.

examples:
  manage.py jobqueue durations
  manage.py jobqueue durations --window week --type send_welcome
  manage.py jobqueue durations --json | jq '.types[] | {type, p95: .ran.p95}'

exit codes:
  0  done
  3  the metrics can't be read
""",
    _add,
    _run,
)
