"""``lanes``: the lanes of ordered queues, with their heads and what holds them."""

from __future__ import annotations

import argparse
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.hints import about_queue
from jobqueue.cli.values import plain
from jobqueue.observe.lanes import lanes_of
from jobqueue.records import Hold, LaneHold, LaneRecord
from jobqueue.worker.start import known_queues

_COLUMNS = ("queue", "lane", "queued", "running", "head", "held_by")
_SHOWN = 3
_WORDS = {
    Hold.RUNS: "{id}, which runs",
    Hold.IS_DUE: "{id}, which is due",
    Hold.WAITS: "{id}, which waits until {due_at:%Y-%m-%d %H:%M:%S} UTC",
    Hold.IS_DEAD: "{id}, which is a dead letter",
}


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queue", metavar="NAME", help="Only the lanes of this queue.")
    parser.add_argument("--limit", metavar="N", type=int, default=100, help="Lanes per queue. Default: 100.")


def _run(options: dict[str, Any], console: Console) -> int:
    backend = current()
    queue = options["queue"]
    if queue is not None:
        for hint in about_queue(queue):
            console.say(hint, console.style.WARNING)
    found = lanes_of(backend, known_queues(backend) if queue is None else [queue], max(1, options["limit"]))
    if console.as_json:
        console.document({"lanes": [plain(one) for one in found]})
    elif found:
        console.table(_COLUMNS, [_row(one) for one in found])
    else:
        console.say("No ordered queue has jobs. To order a queue, see the setting QUEUES.")
    return OK


def _row(lane: LaneRecord) -> list[str]:
    running = ", ".join(lane.running[:_SHOWN]) + (", …" if len(lane.running) > _SHOWN else "")
    return [lane.queue, lane.name, f"{lane.depth:,}", running or "-", lane.head or "-", _held(lane.hold)]


def _held(hold: LaneHold | None) -> str:
    return "-" if hold is None else _WORDS[hold.hold].format(id=hold.id, due_at=hold.due_at)


LANES = Subcommand(
    "lanes",
    "list the lanes of ordered queues, with the first job of each and what holds it",
    """\
A lane of a queue with a key has the key's value as its name. Otherwise its name is *.

examples:
  manage.py jobqueue lanes
  manage.py jobqueue lanes --queue imports --json

exit codes:
  0  listed
  2  invalid arguments
""",
    _add,
    _run,
)
