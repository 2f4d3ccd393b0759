"""``status``: how full the queues are, what is wrong, and an exit code that a monitor can read."""

from __future__ import annotations

from typing import Any

from jobqueue import conf
from jobqueue.backends import current
from jobqueue.backends.base import Backend
from jobqueue.backends.outbox import Outbox
from jobqueue.backends.sql import SqlBackend
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console, Paint
from jobqueue.cli.health import (
    Finding,
    Level,
    QueueState,
    Snapshot,
    findings,
    level_of,
    oldest_age,
    queue_states,
)
from jobqueue.cli.values import ago, counted, plain
from jobqueue.handlers.registry import registry
from jobqueue.records.relay import Waiting

QUEUE_COLUMNS = ("queue", "level", "depth", "capacity", "delayed", "in_progress", "dead_letters", "oldest", "paused")
TYPE_COLUMNS = ("type", "queue", "queued", "delayed", "in_progress", "dead_letters", "oldest")
OUTBOX_COLUMNS = ("relays_to", "waiting", "oldest", "last_relayed", "out_of_reach_since")


def _run(_options: dict[str, Any], console: Console) -> int:
    seen = _look()
    found = findings(seen)
    level = level_of(found)
    if console.as_json:
        console.document(_document(seen, found, level))
    else:
        _show(seen, found, level, console)
    return int(level)


def _look() -> Snapshot:
    backend = current()
    return Snapshot(
        now=backend.now(),
        stats=backend.stats(),
        dead_letters=backend.dead_letters(),
        pauses=backend.pauses(),
        workers=backend.workers(),
        known_types=registry.names,
        capacity=conf.get("CAPACITY"),
        outbox=_outbox(backend),
    )


def _outbox(backend: Backend) -> Waiting | None:
    relays = conf.get("RELAY_TO") is not None
    return Outbox(backend).waiting() if relays and isinstance(backend, SqlBackend) else None


def _show(seen: Snapshot, found: list[Finding], level: Level, console: Console) -> None:
    paints = _paints(console)
    console.line(f"{level.word}: {_summary(seen)}", paints[level])
    for one in found:
        console.line(f"{one.level.word}: {one.text}", paints[one.level])
    states = queue_states(seen)
    if states:
        console.line()
        console.table(
            QUEUE_COLUMNS,
            [_queue_row(one, seen) for one in states],
            {number: paints[one.level] for number, one in enumerate(states) if one.level},
        )
        console.line()
        console.table(TYPE_COLUMNS, [[str(value) for value in row.values()] for row in _types(seen, text=True)])
    if seen.outbox is not None:
        console.line()
        console.table(OUTBOX_COLUMNS, [_outbox_row(seen.outbox, seen)])
    if seen.pauses:
        console.line()
        rows = [[one.scope.value, one.name, ago(one.paused_at, seen.now), one.reason or "-"] for one in seen.pauses]
        console.table(("paused", "name", "since", "reason"), rows)


def _outbox_row(outbox: Waiting, seen: Snapshot) -> list[str]:
    moments = (outbox.oldest, outbox.relayed_at, outbox.lost_at)
    return [str(conf.get("RELAY_TO")), str(outbox.count), *(ago(one, seen.now) for one in moments)]


def _summary(seen: Snapshot) -> str:
    waiting = sum(row.queued for row in seen.stats)
    running = sum(row.in_progress for row in seen.stats)
    dead = sum(row.count for row in seen.dead_letters)
    stale = len(seen.workers) - len(seen.alive)
    silent = f" ({stale} more silent)" if stale else ""
    return (
        f"{counted(waiting)} queued, {running:,} in progress, {counted(dead, 'dead letter')}, "
        f"{counted(len(seen.alive), 'worker')} up{silent}"
    )


def _paints(console: Console) -> dict[Level, Paint]:
    style = console.style
    return {Level.OK: style.SUCCESS, Level.WARNING: style.WARNING, Level.ERROR: style.ERROR}


def _queue_row(state: QueueState, seen: Snapshot) -> list[str]:
    return [
        state.name,
        state.level.word,
        str(state.depth),
        str(state.capacity),
        str(state.delayed),
        str(state.in_progress),
        str(state.dead_letters),
        oldest_age(state.oldest_due_at, seen.now),
        "-" if state.paused is None else state.paused or "yes",
    ]


def _types(seen: Snapshot, *, text: bool = False) -> list[dict[str, Any]]:
    dead = {(row.queue, row.type): row.count for row in seen.dead_letters}
    live = {(row.queue, row.type): row for row in seen.stats}
    rows = []
    for queue, name in sorted({*dead, *live}, key=lambda one: (one[1], one[0])):
        row = live.get((queue, name))
        oldest = row.oldest_due_at if row else None
        rows.append(
            {
                "type": name,
                "queue": queue,
                "queued": row.queued if row else 0,
                "delayed": row.delayed if row else 0,
                "in_progress": row.in_progress if row else 0,
                "dead_letters": dead.get((queue, name), 0),
                "oldest_due_at": oldest_age(oldest, seen.now) if text else plain(oldest),
            }
        )
    return rows


def _document(seen: Snapshot, found: list[Finding], level: Level) -> dict[str, Any]:
    return {
        "level": level.word,
        "now": plain(seen.now),
        "findings": [{"level": one.level.word, "text": one.text} for one in found],
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
while no worker is up, and types that no live worker or no handler knows, are warnings. Where jobs are relayed,
it is one that they wait while the shared database is out of reach, or nobody relays them.

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
