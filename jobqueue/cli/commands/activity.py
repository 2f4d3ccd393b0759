"""``activity``: what ran in the last hour, by type."""

from __future__ import annotations

import argparse
from typing import Any

from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.commands.durations import add_window, seconds
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.values import plain
from jobqueue.observe.metrics import WINDOWS, Figures, figures
from jobqueue.records import Share

_COLUMNS = ("type", "completed", "retried", "dead_letters", "stopped", "lost", "success", "run_mean")
_ALL = "all types"


def _run(options: dict[str, Any], console: Console) -> int:
    found = figures(WINDOWS[options["window"]])
    if console.as_json:
        types = [plain(one) | {"success": one.success} for one in found.by_type]
        console.document({"window": options["window"], "types": types, "total": _total(found)})
    elif found.by_type:
        console.table(_COLUMNS, [*map(_row, found.by_type), _last_row(found)])
    else:
        console.say(f"No attempt has ended in the last {options['window']}.")
    return OK


def _total(found: Figures) -> dict[str, Any]:
    counts = {name: getattr(found.total, name) for name in _COUNTED}
    return counts | {"success": found.success, "per_minute": _per_minute(found)}


_COUNTED = ("completed", "retried", "dead_lettered", "stopped", "lost")


def _per_minute(found: Figures) -> float:
    return round(found.total.completed / (found.window.length.total_seconds() / 60), 2)


def _row(one: Share) -> list[str]:
    return [one.name, *(f"{getattr(one, name):,}" for name in _COUNTED), _share(one.success), seconds(one.mean_ran)]


def _last_row(found: Figures) -> list[str]:
    counts = (f"{getattr(found.total, name):,}" for name in _COUNTED)
    return [_ALL, *counts, _share(found.success), "-"]


def _share(success: float | None) -> str:
    return "-" if success is None else f"{100 * success:.1f} %"


def _add(parser: argparse.ArgumentParser) -> None:
    add_window(parser)


ACTIVITY = Subcommand(
    "activity",
    "show what ran in the last hour, day or week, by type",
    """\
RETRIED counts failed attempts whose job runs again, DEAD LETTERS those whose job was given up, STOPPED jobs that were
cancelled, and LOST those whose worker died. SUCCESS is the share of completed jobs among those that completed or were
given up. Of more than 50 types, the most active are listed. Workers store these metrics every ten seconds, so the
command reads no jobs.

examples:
  manage.py jobqueue activity
  manage.py jobqueue activity --window day --json | jq .total

exit codes:
  0  done
  3  the metrics can't be read
""",
    _add,
    _run,
)
