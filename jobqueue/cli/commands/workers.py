"""``workers``: the workers, what they serve, and how busy they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING
from jobqueue.cli.values import ago, plain
from jobqueue.records import WorkerRecord

COLUMNS = ("name", "host", "pid", "state", "version", "queues", "types", "slots", "busy", "seen", "started")


def _run(_options: dict[str, Any], console: Console) -> int:
    backend = current()
    now, workers = backend.now(), backend.workers.all()
    alive = [one for one in workers if one.is_alive(now)]
    if console.as_json:
        document = [plain(one) | {"alive": one in alive, "state": _state(one, now)} for one in workers]
        console.document({"now": plain(now), "workers": document})
    elif workers:
        silent = {number: console.style.WARNING for number, one in enumerate(workers) if one not in alive}
        console.table(COLUMNS, [_cells(one, now) for one in workers], silent)
    if not alive:
        console.say("No worker is up: start one with manage.py runworker.")
    return OK if alive else WARNING


def _state(worker: WorkerRecord, now: datetime) -> str:
    return worker.state.value if worker.is_alive(now) else "silent"


def _cells(worker: WorkerRecord, now: datetime) -> list[str]:
    return [
        worker.name,
        worker.host,
        str(worker.pid),
        _state(worker, now),
        worker.version,
        "all" if worker.queues is None else ", ".join(worker.queues),
        str(len(worker.types)),
        str(worker.slots),
        str(worker.busy),
        ago(worker.seen_at, now),
        ago(worker.started_at, now),
    ]


WORKERS = Subcommand(
    "workers",
    "list the workers, what they serve, and how busy they are",
    """\
A worker without a heartbeat for 60 seconds is silent: it died, or can't reach the database.

examples:
  manage.py jobqueue workers
  manage.py jobqueue workers --json | jq '.workers[] | select(.alive)'

exit codes:
  0  at least one worker is up
  1  no worker is up
  3  the workers can't be read
""",
    lambda _parser: None,
    _run,
)
