"""Workers that drain a table with forged rows, and the conditions that must hold afterwards."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.management import CommandError, call_command

from jobqueue import backends
from jobqueue.backends.sqlite.claims.leases import SqliteLeases
from jobqueue.clock import SYSTEM, from_text
from jobqueue.handlers.registry import registry
from jobqueue.ids import new_id
from jobqueue.records import Draft
from tests.app import worker_jobs_attacks
from tests.attacks.hostile import QUEUES, Refused, Taken, Vandal
from tests.attacks.isolated import Result, isolated, isolated_command, last_line

assert worker_jobs_attacks

ORDINARY = 20
#: What a worker gets, long before which it must have ended.
LIMIT = 40.0
#: What no worker may say of a database that is there.
LIES = ("Traceback", "did not answer", "is out of reach")


#: What it says of a job that it can do nothing with; as long as it is up, so does ``jobqueue status``.
LEFT_OUT = "can neither be run nor ended"


@dataclass(frozen=True)
class Forgery:
    """One row to be forged: its table, its values, and in words what is hostile about it."""

    table: str
    row: dict[str, Any]
    name: str
    state: str = "queued"


@dataclass(frozen=True)
class Trouble:
    """Something that must not be, and the rows that bring it about."""

    what: str
    rows: tuple[Forgery, ...]

    def __str__(self) -> str:
        names = "; ".join(f"{one.table}.{one.name} ({one.state})" for one in self.rows[:5])
        return f"{names}{' …' if len(self.rows) > 5 else ''}: {self.what}"


def drain(*options: str, seconds: float = LIMIT) -> Result:
    """Run a worker in a fork until nothing is left to do; its last word is its exit status."""

    def look_twice_soon() -> None:
        SqliteLeases.second_look = timedelta(seconds=0.02)

    alone = ("--drain", "--processes", "0", "--skip-checks", "--poll-interval", "0.1")
    return isolated_command("runworker", *alone, *options, seconds=seconds, prepare=look_twice_soon)


Drain = Callable[[], Result]
Trial = Callable[[Vandal, "dict[Any, Forgery]"], str]


def put_ordinary(count: int = ORDINARY) -> list[str]:
    """Enqueue ordinary jobs: one of them fails for good, and one keeps the worker up until it has swept twice."""
    drafts = [
        Draft(id=new_id(), type="swallow", payload=json.dumps({"number": number}), queue=QUEUES[number % len(QUEUES)])
        for number in range(count)
    ]
    drafts.append(Draft(id=new_id(), type="shout", payload='{"text": "no"}', max_retries=1))
    drafts.append(Draft(id=new_id(), type="linger", payload='{"seconds": 0.2}'))
    return [receipt.id for receipt in backends.current().enqueue(drafts)]


def forge(vandal: Vandal, forgeries: Sequence[Forgery]) -> tuple[dict[Any, Forgery], list[Forgery]]:
    """Store forged rows; return those that are stored, by how to find them, and those another row is in the way of."""
    stored: dict[Any, Forgery] = {}
    later = []
    for one in forgeries:
        try:
            stored[one.table, vandal.store(one.table, one.row)] = one
        except Taken:
            later.append(one)
        except Refused:
            continue
    return stored, later


def trouble_with(vandal: Vandal, stored: dict[Any, Forgery], turns: int = 2, way: Drain = drain) -> str:
    """Let workers drain the table in turn; say what is wrong, or nothing."""
    said = ""
    for turn in range(turns):
        ordinary = put_ordinary(ORDINARY if not turn else 3)
        result = way()
        found, left = _of_worker(result), left_of(vandal, ordinary)
        if found or left:
            starved = f"; {len(left)} of {len(ordinary)} ordinary jobs are left" if left else ""
            return f"worker {turn + 1}: {found or 'ended well'}{starved}"
        said = result.output
    return _of_fates(vandal, stored, said)


def _of_worker(result: Result) -> str:
    if result.trouble:
        return result.trouble
    if result.told != [0]:
        return f"status {result.told}: {last_line(result.output)}"
    said = [line for line in result.output.splitlines() if any(lie in line for lie in LIES)]
    return f"says {said[0][:200]} … {last_line(result.output)}" if said else ""


def left_of(vandal: Vandal, ordinary: Sequence[str]) -> list[str]:
    """List the ordinary jobs that have not come to their end."""
    found = {row["id"]: row["status"] for row in vandal.jobs().values()}
    *others, failing, lingering = ordinary
    left = [one for one in (*others, lingering) if found.get(one) != "completed"]
    return left if found.get(failing) == "dead_letter" else [*left, failing]


def _of_fates(vandal: Vandal, stored: dict[Any, Forgery], said: str) -> str:
    """Look what became of the forged rows: run, ended with a reason, or left out by a worker that says so."""
    jobs, moot = vandal.jobs(), []
    for (table, key), one in stored.items():
        if table != "job_queue":
            continue
        row = jobs.get(key)
        if row is None:
            return f"the row is gone: {one.name} ({one.state})"
        has_ended_here = row["status"] in ("dead_letter", "failed") and one.state not in ("dead_letter", "failed")
        if has_ended_here and not (row["error"] or row["end_reason"]):
            return f"it ended without a reason: {one.name} ({one.state})"
        if row["status"] == "queued" and not _may_wait(row) and f"{row['id']} {LEFT_OUT}" not in said:
            moot.append(f"{one.name} ({one.state})")
    return _of_status(vandal, moot)


def _may_wait(row: dict[str, Any]) -> bool:
    try:
        is_early = from_text(row["scheduled_at"]) > SYSTEM.now()
    except (TypeError, ValueError):
        is_early = False
    if not isinstance(row["scheduled_at"], (str, type(None))):
        is_early = row["scheduled_at"] > SYSTEM.now()
    return is_early or row["type"] not in registry.names


def _of_status(vandal: Vandal, left: Sequence[str]) -> str:
    """Have ``jobqueue status`` count everything that is live."""
    told = isolated(_tell_status, 20)
    if told.trouble or not told.told:
        return f"status: {told.trouble or last_line(told.output)}"
    code, text = told.told[-1]
    if code not in (0, 1, 2):
        return f"status: exit {code}: {text[-300:]}"
    document = json.loads(text)
    ((live,),) = vandal.run("SELECT count(*) FROM job_queue WHERE status IN ('queued', 'in_progress')")
    counted = sum(one["queued"] + one["in_progress"] for one in document["types"])
    if counted < live:
        return f"status counts {counted} of {live} live jobs"
    return f"left queued though it is due and known: {', '.join(left[:5])}" if left else ""


def _tell_status(tell: Callable[[Any], None]) -> None:
    out = io.StringIO()
    try:
        call_command("jobqueue", "status", "--json", stdout=out)
        tell([0, out.getvalue()])
    except SystemExit as end:
        tell([end.code, out.getvalue()])
    except CommandError as error:
        tell([error.returncode, str(error)])


def culprits(vandal: Vandal, forgeries: Sequence[Forgery], trial: Trial, most: int = 3) -> list[Trouble]:
    """Find rows that bring trouble each by itself; where only several together do, name these."""
    found: list[Trouble] = []
    rest = list(forgeries)
    while len(found) < most and (what := _tried(vandal, rest, trial)):
        guilty, what = _fewest(vandal, rest, what, trial)
        found.append(Trouble(what, tuple(guilty)))
        rest = [one for one in rest if one not in guilty]
    return found


def _fewest(vandal: Vandal, rows: list[Forgery], what: str, trial: Trial) -> tuple[list[Forgery], str]:
    """Leave out what the trouble can do without, in ever smaller parts."""
    parts = 2
    while len(rows) > 1:
        size = -(-len(rows) // parts)
        cut = [rows[start : start + size] for start in range(0, len(rows), size)]
        rests = [[one for one in rows if one not in part] for part in cut] if parts > 2 else []
        for fewer in (*cut, *rests):
            if said := _tried(vandal, fewer, trial):
                rows, what = fewer, said
                parts = 2 if fewer in cut else max(2, parts - 1)
                break
        else:
            if parts >= len(rows):
                break
            parts = min(len(rows), 2 * parts)
    return rows, what


def _tried(vandal: Vandal, rows: Sequence[Forgery], trial: Trial) -> str:
    vandal.clear()
    stored, _later = forge(vandal, rows)
    return str(trial(vandal, stored)) if stored else ""
