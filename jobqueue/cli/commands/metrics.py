"""``metrics``: the attempts of a window of time, and the jobs that wait now, as numbers for scripts."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand, length
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.hints import about_queue, about_type
from jobqueue.cli.values import plain
from jobqueue.errors import InvalidOption
from jobqueue.observe.backlog import backlog
from jobqueue.observe.metrics import WINDOWS, Figures, Times, Window, figures, window_of
from jobqueue.records import Share
from jobqueue.records.metric import ENDS

_MINUTE = timedelta(minutes=1)
_SHARE_COLUMNS = ("type", *ENDS, "success_rate", "mean_ran")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--window",
        type=_window,
        default=WINDOWS["hour"],
        metavar="LENGTH",
        help="How far back: whole minutes up to 3h, whole ten minutes up to 3d, whole hours up to 30d. Default: 1h.",
    )
    parser.add_argument("--queue", default="", metavar="NAME", help="Only this queue.")
    parser.add_argument("--type", default="", metavar="NAME", help="Only this type.")


def _window(text: str) -> Window:
    try:
        return window_of(length(text))
    except InvalidOption as error:
        raise argparse.ArgumentTypeError(error.complaint) from error


def _run(options: dict[str, Any], console: Console) -> int:
    backend, queue, kind = current(), options["queue"], options["type"]
    window = options["window"]
    for hint in (*(about_queue(queue) if queue else ()), *(about_type(kind) if kind else ())):
        console.say(hint)
    found, now = figures(window, queue, kind), backlog(backend, queue, kind)
    values = {
        "now": backend.now(),
        "window": window.length,
        "queue": queue or None,
        "type": kind or None,
        "depth": now.queued,
        "depth_is_capped": now.is_capped,
        "due": now.due,
        "delayed": now.queued - now.due,
        "oldest_due": now.oldest,
        "in_progress": now.in_progress,
        "dead_letters": now.dead_letters,
        "dead_letters_is_capped": now.is_dead_capped,
        **_attempts(found),
    }
    shares = {"types": found.by_type, "queues": found.by_queue}
    if console.as_json:
        console.document(plain(values) | {name: [_share(one) for one in several] for name, several in shares.items()})
    else:
        console.table(("figure", "value"), [[name, _text(value)] for name, value in _flat(values)])
        console.line()
        rows = [[_text(value) for value in _share(one).values()] for one in found.by_type]
        console.table(_SHARE_COLUMNS, rows)
    return OK


def _attempts(found: Figures) -> dict[str, Any]:
    """Return the figures of the window. Attempts that were released or snoozed aren't in them."""
    total = found.total
    ended = sum(getattr(total, name) for name in ENDS)
    return {
        **{name: getattr(total, name) for name in ENDS},
        "rate_per_minute": total.completed / (found.window.length / _MINUTE),
        "success_rate": found.success,
        "lease_expiry_rate": total.lost / ended if ended else None,
        "waited": _times(total.waited),
        "ran": _times(total.ran),
    }


def _times(times: Times) -> dict[str, float | None]:
    return times._asdict()


def _share(one: Share) -> dict[str, Any]:
    counts = {name: getattr(one, name) for name in ENDS}
    return {"name": one.name, **counts, "success_rate": one.success, "mean_ran": one.mean_ran}


def _flat(values: dict[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, value in values.items():
        parts = value.items() if isinstance(value, dict) else (("", value),)
        found += [(f"{name} {part}".strip(), one) for part, one in parts]
    return found


def _text(value: object) -> str:
    shown = plain(value)
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return "-" if shown is None else str(shown)


METRICS = Subcommand(
    "metrics",
    "show how attempts ended, how long jobs waited and ran, and what waits now",
    """\
These are the numbers of the dashboard for the same window. They come from the metrics that workers store every ten
seconds, so the command takes milliseconds however many jobs there are. Durations are in seconds. Percentiles are within
10 % of exact ones. If "depth is capped" is True, there are more jobs than were counted.

examples:
  manage.py jobqueue metrics --json | jq .success_rate
  manage.py jobqueue metrics --window 15m --queue mail
  manage.py jobqueue metrics --window 7d --type send_welcome --json

exit codes:
  0  the numbers are shown
  2  the window is invalid
  3  the metrics cannot be read
""",
    _add,
    _run,
)
