"""``why``: the reasons why a job is not running, and the commands that help."""

from __future__ import annotations

import argparse
from typing import Any

from jobqueue import conf
from jobqueue.api import get
from jobqueue.backends import current, shared
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING
from jobqueue.cli.reason_text import ReasonWithCommand, reasons
from jobqueue.handlers.registry import registry
from jobqueue.observe import turns
from jobqueue.observe.lanes import hold_of
from jobqueue.observe.limits import used_up
from jobqueue.observe.reasons import CAP, Scene
from jobqueue.records import JobRecord
from jobqueue.states import JobStatus


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="The job's id.")


def _run(options: dict[str, Any], console: Console) -> int:
    job = get(options["id"])
    found = reasons(_scene(job))
    if console.as_json:
        console.document({"id": job.id, "status": job.status.value, "reasons": [_told(one) for one in found]})
    else:
        console.line(f"Job {job.id} ({job.type}, queue {job.queue}) is {job.status.value.replace('_', ' ')}.")
        for one in found:
            console.line(one.text, console.style.WARNING if one.needs_you else None)
            if one.command:
                console.line(f"  {one.command}", console.style.MIGRATE_LABEL)
    return WARNING if any(one.needs_you for one in found) else OK


def _scene(job: JobRecord) -> Scene:
    here, further = current(), shared()
    backend = here if further is None or here.jobs.get(job.id) else further  # a job that is gone here was relayed
    return Scene(
        now=backend.now(),
        job=job,
        pauses=backend.operator.pauses(),
        workers=backend.workers.all(),
        known_types=registry.names,
        relays_to=conf.get("RELAY_TO") if backend is here else None,
        ahead=backend.jobs.ahead_of(job, CAP) if job.status is JobStatus.QUEUED else 0,
        lane=hold_of(backend, job) if job.status is JobStatus.QUEUED else None,
        used_up=used_up(backend, job) if job.status is JobStatus.QUEUED else (),
        turn=turns.place_of(backend, job),
    )


def _told(one: ReasonWithCommand) -> dict[str, Any]:
    return {"code": one.code, "text": one.text, "command": one.command, "needs_you": one.needs_you}


WHY = Subcommand(
    "why",
    "show why a job is not running, and what to do about it",
    """\
example:
  manage.py jobqueue why 01J8ZQ4Y3M6V7K2N5P8R1T4W6X

exit codes:
  0  the job is running, has completed, or will run without help
  1  the job needs a person to act: it is paused, has no worker, was cancelled, or is a dead letter
  3  the job does not exist, or can't be read
""",
    _add,
    _run,
)
