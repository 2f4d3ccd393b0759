"""The arguments that subcommands share: common options, times, durations and filters."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandParser, DjangoHelpFormatter

from jobqueue.backends import current
from jobqueue.cli.console import Console
from jobqueue.durations import LONGEST_DURATION
from jobqueue.handlers.options import in_utc
from jobqueue.records import Filter
from jobqueue.states import JobStatus

_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhdw]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

Run = Callable[[dict[str, Any], Console], int]


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand of ``manage.py jobqueue``: its name, help texts, arguments and function."""

    name: str
    summary: str
    epilog: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Run


class Help(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """A help formatter with Django's order of options, which keeps the line breaks of the epilog."""


def install(subparsers: Any, subcommand: Subcommand) -> None:
    """Add a subcommand's parser. Django's own options can be given before or after the subcommand."""
    parser: CommandParser = subparsers.add_parser(
        subcommand.name,
        help=subcommand.summary,
        description=f"{subcommand.summary[:1].upper()}{subcommand.summary[1:]}.",
        epilog=subcommand.epilog,
        formatter_class=Help,
    )
    parser.set_defaults(run=subcommand.run)
    subcommand.add(parser)
    parser.add_argument("--json", action="store_true", dest="as_json", help="Write one JSON document to stdout.")
    quiet: dict[str, Any] = {"default": argparse.SUPPRESS}
    parser.add_argument("-v", "--verbosity", type=int, choices=range(4), help="0 keeps stderr quiet.", **quiet)
    parser.add_argument("--no-color", action="store_true", help="Write without colour, as NO_COLOR does.", **quiet)
    parser.add_argument(
        "--force-color", action="store_true", help="Write in colour, even to a file or a pipe.", **quiet
    )
    for option in ("--settings", "--pythonpath"):
        parser.add_argument(option, help=argparse.SUPPRESS, **quiet)
    parser.add_argument("--traceback", action="store_true", help=argparse.SUPPRESS, **quiet)


def length(text: str) -> timedelta:
    """Read ``90``, ``90s``, ``5m``, ``2h``, ``3d`` or ``1w``."""
    found = _LENGTH.fullmatch(text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 5m, 2h, 3d or 1w")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > LONGEST_DURATION.total_seconds():
        raise argparse.ArgumentTypeError(f"{text!r} is longer than {LONGEST_DURATION.days} days")
    return timedelta(seconds=seconds)


def moment(text: str) -> datetime | timedelta:
    """Read an ISO 8601 time, or how long ago it was. Without an offset it is in the project's time zone."""
    if _LENGTH.fullmatch(text.strip().lower()) and not text.strip().isdigit():
        return length(text)
    try:
        read = in_utc(datetime.fromisoformat(text.strip()))
        if read is None:
            raise ValueError(text)
        return read
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; write 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 2h, 3d"
        ) from error


def status(text: str) -> JobStatus:
    """Read a status, written with hyphens or underscores."""
    try:
        return JobStatus(text.strip().lower().replace("-", "_"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a status; choose from {', '.join(JobStatus)}") from error


def number(text: str) -> int:
    """Read a positive integer."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:12]) <= 100_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 100,000,000")
    return int(text)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that select jobs. Repeating an option selects more jobs, adding another selects fewer."""
    filters = parser.add_argument_group("which jobs")
    many: dict[str, Any] = {"action": "append", "default": []}
    filters.add_argument("--status", type=status, metavar="STATUS", help=f"{', '.join(JobStatus)}; repeatable.", **many)
    filters.add_argument("--type", metavar="TYPE", dest="types", help="The job type; repeatable.", **many)
    filters.add_argument("--queue", metavar="QUEUE", dest="queues", help="The queue; repeatable.", **many)
    filters.add_argument("--tenant", help="The tenant.")
    filters.add_argument("--error", metavar="TEXT", default="", help="A part of the last error; case is ignored.")
    ages = "an ISO 8601 time, or an age: 90s, 5m, 2h, 3d, 1w"
    filters.add_argument("--created-after", type=moment, metavar="WHEN", help=f"Created at this time or later: {ages}.")
    filters.add_argument("--created-before", type=moment, metavar="WHEN", help=f"Created before this time: {ages}.")
    filters.add_argument(
        "--older-than", type=length, metavar="AGE", help="Created longer ago than this: 90s, 5m, 2h, 3d, 1w."
    )


def read_filter(options: dict[str, Any]) -> Filter:
    """Make a filter from the options. Ages are relative to the database's clock."""
    now = current().now()
    limits = [one for one in (options["created_before"], options["older_than"]) if one is not None]
    return Filter(
        statuses=frozenset(options["status"]),
        types=frozenset(options["types"]),
        queues=frozenset(options["queues"]),
        tenant=options["tenant"],
        error=options["error"],
        created_after=_moment(options["created_after"], now),
        created_before=min((_moment(one, now) or now for one in limits), default=None),
    )


def _moment(value: datetime | timedelta | None, now: datetime) -> datetime | None:
    return now - value if isinstance(value, timedelta) else value
