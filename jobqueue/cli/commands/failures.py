"""``failures``: what failed and why, by error."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from jobqueue.backends import current
from jobqueue.backends.base import Backend
from jobqueue.cli.arguments import Subcommand, number
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, failure
from jobqueue.cli.hints import about_type
from jobqueue.cli.values import ago, counted, moment, plain
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import Caps, ErrorGroup, ErrorShare, GroupFilter, GroupOrder

_COLUMNS = ("fingerprint", "jobs", "type", "last", "error")
#: Counts are exact up to so many dead letters. They are read in a fraction of a second.
_CAPS = Caps(group=40_000, groups=40_000, hour=100, hours=5_000)
#: How many of the newest dead letters of a group are compared.
_COMPARED = 1_000
_SHOWN = 5
#: How much of a fingerprint a terminal shows, and how many errors are searched for one that begins so.
_SHORT, _SEARCHED = 12, 1_000


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fingerprint", nargs="?", metavar="FINGERPRINT", help="Show one error with all details.")
    parser.add_argument("--type", metavar="TYPE", help="Only errors of this job type.")
    parser.add_argument("--error", metavar="TEXT", default="", help="Only errors with this text; case is ignored.")
    parser.add_argument(
        "--order",
        choices=[one.value for one in GroupOrder],
        default=GroupOrder.LATEST.value,
        help="By the last failure, by the first one, or by number. Default: latest.",
    )
    parser.add_argument("--limit", type=number, default=20, metavar="N", help="Show at most N errors. Default: 20.")


def _run(options: dict[str, Any], console: Console) -> int:
    if options["fingerprint"] is not None:
        return _one(options["fingerprint"], console)
    backend = current()
    wanted = GroupFilter(options["type"] or "", options["error"], GroupOrder(options["order"]))
    found = backend.errors.groups(options["limit"], _CAPS, wanted)
    if console.as_json:
        console.document({"errors": [_document(backend, one) for one in found.groups], "more": found.more})
        return OK
    if not found.groups:
        console.say("There are no such dead letters.")
        for hint in about_type(options["type"]) if options["type"] else ():
            console.say(hint)
        return OK
    now = backend.now()
    shown = _SHORT if console.out.isatty() else None
    console.table(_COLUMNS, [_row(backend, one, now, shown) for one in found.groups])
    if found.more:
        console.say(f"There are more than these {len(found.groups):,} errors; see --limit.")
    return OK


def _row(backend: Backend, one: ErrorGroup, now: datetime, shown: int | None) -> list[str]:
    return [
        one.fingerprint[:shown] or "-",
        f"{one.count:,}{'+' if one.capped else ''}",
        one.type,
        ago(one.last_at, now),
        ": ".join(filter(None, (one.error_class, _error(backend, one)))),
    ]


def _error(backend: Backend, one: ErrorGroup) -> str:
    """Return the error of the newest dead letter without secrets, for which its payload is read."""
    job = backend.jobs.get(one.newest_id)
    return redact_text(one.error, secret_values(job.payload) if job else ())


def _document(backend: Backend, one: ErrorGroup) -> dict[str, Any]:
    read: dict[str, Any] = plain(one)
    return read | {"error": _error(backend, one), "came_back": one.came_back}


def _one(fingerprint: str, console: Console) -> int:
    backend = current()
    group = _group(backend, "" if fingerprint == "-" else fingerprint)
    if group is None:
        raise failure(f"No dead letter has the fingerprint {fingerprint!r}. 'jobqueue failures' lists them.")
    shares, traceback = backend.errors.shares(group.fingerprint, _COMPARED), _traceback(backend, group)
    if console.as_json:
        told = {"shares": plain(shares), "traceback": traceback}
        console.document({"error": _document(backend, group) | told})
        return OK
    console.line(f"{group.error_class or group.type}: {_error(backend, group)}", console.style.ERROR)
    console.line(f"{counted(group.count, 'dead letter', capped=group.capped)} of the type {group.type}")
    console.line(f"first  {moment(group.first_at)}")
    console.line(f"last   {moment(group.last_at)}, job {group.newest_id}")
    if group.retried_at:
        console.line(f"last retried {moment(group.retried_at)}{'; it came back' if group.came_back else ''}")
    for one in group.releases:
        console.line(f"seen in release {one.release} since {moment(one.first_at)}")
    for label in ("tenants", "queues", "hosts", "releases"):
        if several := getattr(shares, label):
            console.line(f"{label.ljust(8)}  {_shares(several)}")
    if traceback:
        console.line()
        console.block(traceback)
    return OK


def _group(backend: Backend, beginning: str) -> ErrorGroup | None:
    """Return the group with a fingerprint, or the only one whose fingerprint begins so."""
    group = backend.errors.group(beginning, _CAPS)
    if group is not None or not beginning:
        return group
    found = [one for one in backend.errors.groups(_SEARCHED, _CAPS).groups if one.fingerprint.startswith(beginning)]
    if len(found) > 1:
        raise failure(f"{len(found):,} fingerprints begin with {beginning!r}. Give more of the one that you mean.")
    return found[0] if found else None


def _shares(several: tuple[ErrorShare, ...]) -> str:
    shown = ", ".join(f"{one.name or '(none)'} {one.number:,}" for one in several[:_SHOWN])
    return shown + (", …" if len(several) > _SHOWN else "")


def _traceback(backend: Backend, group: ErrorGroup) -> str:
    job = backend.jobs.get(group.newest_id)
    if job is None or not job.history:
        return ""
    return redact_text(job.history[-1].traceback, secret_values(job.payload))


FAILURES = Subcommand(
    "failures",
    "show what failed and why: the dead letters by error",
    """\
Dead letters with the same fingerprint failed in the same way. Each row shows the newest of them. With a fingerprint,
or the beginning of one, the command shows the traceback, and which tenants, queues, hosts and releases have the error.

examples:
  manage.py jobqueue failures
  manage.py jobqueue failures --order largest --type send_welcome
  manage.py jobqueue failures 4f6a1c9be0d2
  manage.py jobqueue failures --json | jq '.errors[] | {count, error}'

exit codes:
  0  done, also if nothing failed
  3  no dead letter has the fingerprint, or the dead letters can't be read
""",
    _add,
    _run,
)
