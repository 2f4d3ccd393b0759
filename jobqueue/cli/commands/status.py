"""``status``: how full the queues are, what is wrong, and an exit code that a monitor can read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobqueue import conf
from jobqueue.backends import current
from jobqueue.cli import exits
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console, Paint
from jobqueue.cli.finding_text import document, text
from jobqueue.cli.values import ago, counted, length, plain
from jobqueue.observe.health import Finding, Level, QueueState, Reading, findings, level_of, look, queue_states
from jobqueue.observe.metrics import in_progress
from jobqueue.records import DeadLetterCount, Depth
from jobqueue.records.relay import Waiting
from jobqueue.relay.outbox import waiting_in

QUEUE_COLUMNS = ("queue", "level", "depth", "capacity", "delayed", "in_progress", "dead_letters", "oldest", "paused")
SHED_COLUMNS = ("queue", "shed", "last")
TYPE_COLUMNS = ("type", "queue", "queued", "delayed", "in_progress", "dead_letters", "oldest")
OUTBOX_COLUMNS = ("relays_to", "waiting", "oldest", "last_relayed", "out_of_reach_since")


#: Notices are shown, but don't affect the exit code.
EXIT_CODES = {Level.OK: exits.OK, Level.NOTICE: exits.OK, Level.WARNING: exits.WARNING, Level.ERROR: exits.ERROR}


def _run(_options: dict[str, Any], console: Console) -> int:
    backend = current()
    seen = look(backend, waiting_in(backend))
    found = findings(seen)
    level = level_of(found)
    if console.as_json:
        console.document(_document(seen, found, level))
    else:
        _show(seen, found, level, console)
    return EXIT_CODES[level]


def _show(seen: Reading, found: list[Finding], level: Level, console: Console) -> None:
    paints = _paints(console)
    console.line(f"{level.word}: {_summary(seen)}", paints[level])
    for one in found:
        console.line(f"{one.level.word}: {text(one, seen.now)}", paints[one.level])
    states = queue_states(seen)
    if states:
        console.line()
        console.table(
            QUEUE_COLUMNS,
            [_queue_row(one, seen) for one in states],
            {number: paints[one.level] for number, one in enumerate(states) if one.level},
        )
        console.line()
        console.table(TYPE_COLUMNS, [_type_row(row, seen) for row in _types(seen)])
    if shed := [one for one in seen.gauges.values() if one.shed]:
        console.line()
        console.table(SHED_COLUMNS, [[one.queue, str(one.shed), ago(one.shed_at, seen.now)] for one in shed])
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
    running = in_progress(seen.depths, seen.in_part)
    dead = sum(row.count for row in seen.dead_letters)
    silent = f" ({len(seen.silent)} more silent)" if seen.silent else ""
    return (
        f"{counted(waiting, capped=seen.in_part or _is_capped(*seen.depths))} queued, {running:,} in progress, "
        f"{counted(dead, 'dead letter', capped=seen.dead_in_part or _is_capped(*seen.dead_letters))}, "
        f"{counted(len(seen.alive), 'worker')} up{silent}"
    )


def _is_capped(*rows: Depth | DeadLetterCount) -> bool:
    return any(row.capped for row in rows)


def _paints(console: Console) -> dict[Level, Paint]:
    style = console.style
    return {
        Level.OK: style.SUCCESS,
        Level.NOTICE: style.SUCCESS,
        Level.WARNING: style.WARNING,
        Level.ERROR: style.ERROR,
    }


def _queue_row(state: QueueState, seen: Reading) -> list[str]:
    more, more_dead = "+" if state.is_capped else "", "+" if state.is_dead_capped else ""
    return [
        state.name,
        state.level.word,
        f"{state.depth}{more}",
        str(state.capacity),
        str(state.delayed),
        str(state.in_progress),
        f"{state.dead_letters}{more_dead}",
        _age(state.oldest_due_at, seen),
        "-" if state.paused is None else state.paused or "yes",
    ]


def _age(oldest: datetime | None, seen: Reading) -> str:
    return "-" if oldest is None else length(seen.now - oldest)


def _types(seen: Reading) -> list[dict[str, Any]]:
    dead = {(row.queue, row.type): row for row in seen.dead_letters}
    live = {(row.queue, row.type): row for row in seen.depths}
    nothing, none_dead = Depth("", "", 0, False, 0, None, 0, False), DeadLetterCount("", "", 0)
    rows = []
    for queue, name in sorted({*dead, *live}, key=lambda one: (one[1], one[0])):
        row, buried = live.get((queue, name), nothing), dead.get((queue, name), none_dead)
        rows.append(
            {
                "type": name,
                "queue": queue,
                "queued": row.queued,
                "delayed": row.queued - row.due,
                "in_progress": row.in_progress,
                "dead_letters": buried.count,
                "oldest_due_at": row.oldest_due_at,
                "is_capped": row.capped,
                "is_dead_capped": buried.capped,
            }
        )
    return rows


def _type_row(row: dict[str, Any], seen: Reading) -> list[str]:
    more, more_dead = "+" if row["is_capped"] else "", "+" if row["is_dead_capped"] else ""
    return [
        row["type"],
        row["queue"],
        f"{row['queued']}{more}",
        str(row["delayed"]),
        str(row["in_progress"]),
        f"{row['dead_letters']}{more_dead}",
        _age(row["oldest_due_at"], seen),
    ]


def _document(seen: Reading, found: list[Finding], level: Level) -> dict[str, Any]:
    return {
        "level": level.word,
        "now": plain(seen.now),
        "findings": [document(one, seen.now) for one in found],
        "queues": [plain(one) | {"level": one.level.word, "share": round(one.share, 4)} for one in queue_states(seen)],
        "types": plain(_types(seen)),
        "paused": plain(seen.pauses),
        "workers": {
            "alive": len(seen.alive),
            "silent": len(seen.silent),
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
Each problem is one line, the worst first, with what to do. The dashboard of the admin shows the same problems. A
notice, such as a pause, doesn't affect the exit code. Large numbers are counted up to a limit; a "+" follows them.
A queue warns at 80 % of its capacity, or of JOBQUEUE["CAPACITY"] if it has none, and is an error at 100 %.

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
