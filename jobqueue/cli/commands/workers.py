"""``workers``: the workers, what they serve, and how busy they are; and what is asked of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import ERROR, OK, WARNING, failure
from jobqueue.cli.values import ago, plain
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records import WorkerRecord, WorkerRequest

COLUMNS = ("name", "host", "pid", "state", "version", "queues", "types", "slots", "busy", "seen", "started")


REQUESTS = {"quiet": WorkerRequest.QUIET, "resume": None, "stop": WorkerRequest.STOP}
_DONE = {
    "quiet": "will stop taking jobs within 10 seconds; its running jobs continue",
    "resume": "will take jobs again within 10 seconds",
    "stop": "will begin to stop within 10 seconds",
}


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "request", nargs="?", choices=REQUESTS, help="Ask workers to take no more jobs, to take jobs again, or to stop."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="The names or lease owners of the workers.")


def _run(options: dict[str, Any], console: Console) -> int:
    request, names = options["request"], options["names"]
    if request is None:
        return _list(console)
    if not names:
        raise CommandError(f"Name the workers to {request}; 'jobqueue workers' lists them.", returncode=ERROR)
    return _ask(request, names, console)


def _ask(request: str, names: Sequence[str], console: Console) -> int:
    """Ask all live workers with these names, or none if a name is unknown."""
    backend = current()
    alive = [one for one in backend.workers.all() if one.is_alive(backend.now())]
    known = {name for one in alive for name in (one.name, one.owner)}
    for name in names:
        if name not in known:
            raise failure(f"No live worker is named {name!r}. {did_you_mean(name, known)}".strip())
    wanted = [one for one in alive if {one.name, one.owner} & {*names}]
    asked = [one for one in wanted if control.ask_worker(one.owner, REQUESTS[request])]
    for one in asked:
        console.say(f"The worker {one.name} ({one.owner}) {_DONE[request]}.")
    for one in wanted:
        if one not in asked:
            console.say(f"The worker {one.name} ({one.owner}) is gone.", console.style.WARNING)
    if console.as_json:
        console.document({"request": request, "workers": [one.owner for one in asked]})
    return OK


def _list(console: Console) -> int:
    backend = current()
    now, workers = backend.now(), backend.workers.all()
    alive = [one for one in workers if one.is_alive(now)]
    if console.as_json:
        document = [plain(one) | {"alive": one in alive, "state": _state(one, now)} for one in workers]
        console.document({"now": plain(now), "workers": document, "duties": plain(backend.duties.all())})
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
    "list the workers, or ask some to take no more jobs or to stop",
    """\
A worker without a heartbeat for 60 seconds is silent: it died, or can't reach the database.
A worker learns of a request at its next heartbeat, within 10 seconds. A quiet worker runs what it has and takes
nothing more until it is resumed. A worker that is asked to stop ends as after SIGTERM.
With --json, the periodic duties that one worker does for all are listed too.

examples:
  manage.py jobqueue workers
  manage.py jobqueue workers quiet images-1
  manage.py jobqueue workers stop images-1 images-2
  manage.py jobqueue workers --json | jq '.workers[] | select(.alive)'

exit codes:
  0  at least one worker is up; or all were asked
  1  no worker is up
  2  invalid arguments
  3  the workers can't be read; or a name is unknown, and nobody was asked
""",
    _add,
    _run,
)
