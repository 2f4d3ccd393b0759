"""``status``: how full the queues are, what is wrong, and an exit code that a monitor can read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobqueue import conf
from jobqueue.backends import current
from jobqueue.cli import exits
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console, Paint
from jobqueue.cli.finding_text import text
from jobqueue.cli.values import ago, counted, length, plain
from jobqueue.handlers.registry import registry
from jobqueue.observe.health import Finding, Level, QueueState, Reading, exact, findings, queue_states
from jobqueue.records.relay import Waiting
from jobqueue.relay.outbox import waiting_in

QUEUE_COLUMNS = ("queue", "level", "depth", "capacity", "delayed", "in_progress", "dead_letters", "oldest", "paused")
TYPE_COLUMNS = ("type", "queue", "queued", "delayed", "in_progress", "dead_letters", "oldest")
OUTBOX_COLUMNS = ("relays_to", "waiting", "oldest", "last_relayed", "out_of_reach_since")


#: Notices are shown in the tables, but don't affect the exit code.
EXIT_CODES = {Level.OK: exits.OK, Level.NOTICE: exits.OK, Level.WARNING: exits.WARNING, Level.ERROR: exits.ERROR}


def _run(_options: dict[str, Any], console: Console) -> int:
    seen = _look()
    found = [one for one in findings(seen) if one.level > Level.NOTICE]
    level = max((one.level for one in found), default=Level.OK)
    if console.as_json:
        console.document(_document(seen, found, level))
    else:
        _show(seen, found, level, console)
    return EXIT_CODES[level]


def _look() -> Reading:
    backend = current()
    now, stats, dead_letters, pauses = (
        backend.now(),
        backend.jobs.stats(),
        backend.jobs.dead_letters(),
        backend.operator.pauses(),
    )
    return Reading(
        now=now,
        depths=exact(stats, pauses),
        dead_letters=dead_letters,
        pauses=pauses,
        workers=backend.workers.all(),
        known_types=registry.names,
        capacity=conf.get("CAPACITY"),
        outbox=waiting_in(backend),
    )


def _show(seen: Reading, found: list[Finding], level: Level, console: Console) -> None:
    paints = _paints(console)
    console.line(f"{level.word}: {_summary(seen)}", paints[level])
    for one in found:
        console.line(f"{one.level.word}: {text(one, seen)}", paints[one.level])
    states = queue_states(seen)
    if states:
        console.line()
        console.table(
            QUEUE_COLUMNS,
            [_queue_row(one, seen) for one in states],
            {number: paints[one.level] for number, one in enumerate(states) if one.level},
        )
        console.line()
        console.table(TYPE_COLUMNS, [[str(value) for value in row.values()] for row in _types(seen, as_text=True)])
    if seen.outbox is not None:
        console.line()
        console.table(OUTBOX_COLUMNS, [_outbox_row(seen.outbox, seen)])
    if seen.pauses:
        console.line()
        rows = [[one.scope.value, one.name, ago(one.paused_at, seen.now), one.reason or "-"] for one in seen.pauses]
        console.table(("paused", "name", "since", "reason"), rows)


def _outbox_row(outbox: Waiting, seen: Reading) -> list[str]:
    moments = (outbox.oldest, outbox.relayed_at, outbox.lost_at)
    return [str(conf.get("RELAY_TO")), str(outbox.count), *(ago(one, seen.now) for one in moments)]


def _summary(seen: Reading) -> str:
    waiting = sum(row.queued for row in seen.depths)
    running = sum(row.in_progress for row in seen.depths)
    dead = sum(row.count for row in seen.dead_letters)
    stale = len(seen.workers) - len(seen.alive)
    silent = f" ({stale} more silent)" if stale else ""
    return (
        f"{counted(waiting)} queued, {running:,} in progress, {counted(dead, 'dead letter')}, "
        f"{counted(len(seen.alive), 'worker')} up{silent}"
    )


def _paints(console: Console) -> dict[Level, Paint]:
    style = console.style
    return {
        Level.OK: style.SUCCESS,
        Level.NOTICE: style.SUCCESS,
        Level.WARNING: style.WARNING,
        Level.ERROR: style.ERROR,
    }


def _queue_row(state: QueueState, seen: Reading) -> list[str]:
    return [
        state.name,
        state.level.word,
        str(state.depth),
        str(state.capacity),
        str(state.delayed),
        str(state.in_progress),
        str(state.dead_letters),
        _age(state.oldest_due_at, seen),
        "-" if state.paused is None else state.paused or "yes",
    ]


def _age(oldest: datetime | None, seen: Reading) -> str:
    return "-" if oldest is None else length(seen.now - oldest)


def _types(seen: Reading, *, as_text: bool = False) -> list[dict[str, Any]]:
    dead = {(row.queue, row.type): row.count for row in seen.dead_letters}
    live = {(row.queue, row.type): row for row in seen.depths}
    rows = []
    for queue, name in sorted({*dead, *live}, key=lambda one: (one[1], one[0])):
        row = live.get((queue, name))
        oldest = row.oldest_due_at if row else None
        rows.append(
            {
                "type": name,
                "queue": queue,
                "queued": row.queued if row else 0,
                "delayed": row.queued - row.due if row else 0,
                "in_progress": row.in_progress if row else 0,
                "dead_letters": dead.get((queue, name), 0),
                "oldest_due_at": _age(oldest, seen) if as_text else plain(oldest),
            }
        )
    return rows


def _document(seen: Reading, found: list[Finding], level: Level) -> dict[str, Any]:
    return {
        "level": level.word,
        "now": plain(seen.now),
        "findings": [{"level": one.level.word, "text": text(one, seen)} for one in found],
        "queues": [plain(one) | {"level": one.level.word, "share": round(one.share, 4)} for one in queue_states(seen)],
        "types": _types(seen),
        "paused": plain(seen.pauses),
        "workers": {
            "alive": len(seen.alive),
            "silent": len(seen.workers) - len(seen.alive),
            "slots": sum(one.slots for one in seen.alive),
            "busy": sum(one.busy for one in seen.alive),
        },
        "outbox": plain(seen.outbox),
        "unserved_types": seen.unserved_types,
        "unknown_types": seen.unknown_types,
    }


STATUS = Subcommand(
    "status",
    "show how full the queues are, who works on them, and what is wrong",
    """\
A queue warns at 80 % of JOBQUEUE["CAPACITY"] waiting jobs, and is an error at 100 %. Jobs that are due
while no worker is up, types that no live worker takes, and types without a handler are warnings. Where jobs are
relayed, it is a warning if they wait because the shared database is out of reach, or because no worker relays them.

examples:
  manage.py jobqueue status
  manage.py jobqueue status --json | jq .queues

exit codes:
  0  ok
  1  a warning
  2  an error
  3  the status cannot be read
""",
    lambda _parser: None,
    _run,
)
