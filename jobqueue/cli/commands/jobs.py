"""``list`` and ``show``: many jobs in a table, and one job with all details."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import Any

from jobqueue.api import get
from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand, add_filters, number, read_filter
from jobqueue.cli.console import Console, Paint
from jobqueue.cli.exits import OK
from jobqueue.cli.hints import about_filter
from jobqueue.cli.values import ago, length, moment, plain
from jobqueue.policy.redaction import redact_data, redact_text, secret_values
from jobqueue.records import Filter, JobRecord, PastAttempt
from jobqueue.states import JobStatus

COLUMNS = ("id", "type", "queue", "status", "priority", "attempts", "created", "due", "error")
PAGE = 100

_TOLD_APART = ("payload", "result", "progress", "context", "history", "error")
_OF_A_LIST = (
    "id", "type", "status", "queue", "priority", "tenant", "attempts", "max_retries", "created_at", "scheduled_at",
    "started_at", "completed_at", "lease_owner", "end_reason", "parent_id",
)  # fmt: skip


def _add_list(parser: argparse.ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument("--limit", type=number, default=50, metavar="N", help="Show at most N jobs. Default: 50.")
    parser.add_argument(
        "--order", choices=("newest", "oldest"), default="newest", help="The order, by id. Default: newest first."
    )


def _list(options: dict[str, Any], console: Console) -> int:
    wanted = read_filter(options)
    rows = _read(wanted, options["limit"], options["order"] == "newest")
    if console.as_json:
        console.document({"jobs": [_in_list(row) for row in rows]})
        return OK
    if not rows:
        console.say("No job matches.")
        for hint in about_filter(wanted):
            console.say(hint)
        return OK
    now = current().now()
    paints = {number: paint for number, row in enumerate(rows) if (paint := _paint(row, console))}
    console.table(COLUMNS, [_cells(row, now) for row in rows], paints)
    if len(rows) == options["limit"]:
        console.say(f"There may be more than these {len(rows):,} jobs; see --limit.")
    return OK


def _read(wanted: Filter, limit: int, newest_first: bool) -> list[dict[str, Any]]:
    """Read jobs page by page, and keep only the columns of a list, because payloads may be large."""
    rows: list[dict[str, Any]] = []
    after = None
    while len(rows) < limit:
        size = min(PAGE, limit - len(rows))
        page = current().jobs.find(wanted, size, after, newest_first)
        rows += [{name: getattr(job, name) for name in _OF_A_LIST} | {"error": _error(job)} for job in page]
        if len(page) < size:
            break
        after = page[-1].id
    return rows


def _error(job: JobRecord) -> str | None:
    return None if job.error is None else redact_text(job.error, secret_values(job.payload))


def _in_list(row: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = plain(row)
    return read


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    due = ago(row["scheduled_at"], now) if row["status"] is JobStatus.QUEUED else "-"
    return [
        row["id"],
        row["type"],
        row["queue"],
        row["status"].value,
        str(row["priority"]),
        f"{row['attempts']}/{row['max_retries']}",
        ago(row["created_at"], now),
        due,
        row["error"] or row["end_reason"] or "-",
    ]


def _paint(row: dict[str, Any], console: Console) -> Paint | None:
    style = console.style
    paints: dict[JobStatus, Paint] = {
        JobStatus.DEAD_LETTER: style.ERROR,
        JobStatus.FAILED: style.WARNING,
        JobStatus.COMPLETED: style.SUCCESS,
    }
    return paints.get(row["status"])


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="The job's id.")
    parser.add_argument("--reveal", action="store_true", help="Show secrets too; by default they are redacted.")


def _show(options: dict[str, Any], console: Console) -> int:
    read = get(options["id"])
    job = plain(read) if options["reveal"] else _redacted(read)
    if console.as_json:
        console.document({"job": job})
        return OK
    columns = {name: value for name, value in job.items() if name not in _TOLD_APART}
    width = max(map(len, columns))
    for name, value in columns.items():
        console.line(f"{name.ljust(width)}  {'-' if value is None else value}")
    for name in ("payload", "result", "progress", "context"):
        if job[name] is not None or name == "payload":
            _head(name, console)
            console.block(json.dumps(job[name], indent=2, ensure_ascii=False))
    if job["error"]:
        _head("error", console)
        console.block(job["error"], console.style.ERROR)
    _show_history(read.history, job["history"], console)
    return OK


def _head(title: str, console: Console) -> None:
    console.line()
    console.line(title, console.style.MIGRATE_HEADING)


def _show_history(history: tuple[PastAttempt, ...], shown: list[dict[str, Any]], console: Console) -> None:
    if history:
        _head("history", console)
    for past, told in zip(history, shown, strict=True):
        took = "" if past.duration is None else f", after {length(past.duration)}"
        console.line(f"{moment(past.ended_at)}  attempt {past.attempt} {past.ending.value}{took}, on {past.owner}")
        said = ": ".join(part for part in (told["error_class"], told["message"]) if part)
        if said:
            console.line(f"  {said}", console.style.ERROR)
        if told["traceback"]:
            console.block("".join(f"    {line}\n" for line in told["traceback"].splitlines()).rstrip("\n"))


def _redacted(job: JobRecord) -> dict[str, Any]:
    secrets = secret_values([job.payload, job.context])
    shown: dict[str, Any] = plain(job)
    for name in ("payload", "result", "progress", "context"):
        shown[name] = redact_data(shown[name])
    shown["error"] = None if job.error is None else redact_text(job.error, secrets)
    for past in shown["history"]:
        past["message"] = redact_text(past["message"], secrets)
        past["traceback"] = redact_text(past["traceback"], secrets)
    return shown


LIST = Subcommand(
    "list",
    "list jobs, newest first",
    """\
examples:
  manage.py jobqueue list --status dead_letter
  manage.py jobqueue list --type send_welcome --type resize_image --created-after 2h
  manage.py jobqueue list --error "connection refused" --limit 500 --json

exit codes:
  0  done, or no job matches
  2  invalid arguments
  3  the jobs can't be read
""",
    _add_list,
    _list,
)

SHOW = Subcommand(
    "show",
    "show all details of one job, with the history of its attempts",
    """\
Secrets in the payload, result, errors and tracebacks are shown as [redacted], unless --reveal is given.

examples:
  manage.py jobqueue show 01J8ZQ4Y3M6V7K2N5P8R1T4W6X
  manage.py jobqueue show 01J8ZQ4Y3M6V7K2N5P8R1T4W6X --json

exit codes:
  0  done
  3  the job does not exist, or can't be read
""",
    _add_show,
    _show,
)
