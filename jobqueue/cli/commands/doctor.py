"""``doctor``: what is set up wrong, or will cause trouble, with a remedy for each."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError

from jobqueue import conf
from jobqueue.backends import current
from jobqueue.backends.base import Backend
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.commands.status import EXIT_CODES
from jobqueue.cli.console import Console
from jobqueue.cli.values import WORDING
from jobqueue.errors import JobQueueError
from jobqueue.observe.doctor import Diagnosis, diagnoses, examine
from jobqueue.observe.health import Level
from jobqueue.records.relay import Waiting
from jobqueue.relay.outbox import waiting_in


def _run(_options: dict[str, Any], console: Console) -> int:
    backend = current()
    found = diagnoses(examine(backend, conf.get("DATABASE"), _outbox(backend)), WORDING)
    level = max((one.level for one in found), default=Level.OK)
    if console.as_json:
        console.document({"level": level.word, "diagnoses": [_document(one) for one in found]})
        return EXIT_CODES[level]
    paints = {
        Level.NOTICE: console.style.SUCCESS,
        Level.WARNING: console.style.WARNING,
        Level.ERROR: console.style.ERROR,
    }
    for one in found:
        console.line(f"{one.level.word}: {one.text} ({one.code})", paints[one.level])
        if one.remedy:
            console.line(f"  {one.remedy}")
        console.line(f"  {one.page}", console.style.MIGRATE_LABEL)
    console.say("1 diagnosis." if len(found) == 1 else f"{len(found)} diagnoses.")
    return EXIT_CODES[level]


def _outbox(backend: Backend) -> Waiting | None:
    try:
        return waiting_in(backend)
    except (DatabaseError, JobQueueError):
        return None  # a diagnosis says so


def _document(one: Diagnosis) -> dict[str, Any]:
    return {"level": one.level.word, "code": one.code, "text": one.text, "remedy": one.remedy, "page": one.page}


DOCTOR = Subcommand(
    "doctor",
    "show what is set up wrong or will cause trouble, each with a remedy",
    """\
Each diagnosis has a level, a code, a remedy and a page of the documentation. The doctor runs the system checks of the
queue with those for a deployment, and looks at the database's settings, rights, indexes and sizes, at migrations, at
disks, at the clocks and releases of workers, and at old snapshots. It sends itself a wake-up, and changes nothing. For
the jobs of the moment, see "jobqueue status".

examples:
  manage.py jobqueue doctor
  manage.py jobqueue doctor --json | jq '.diagnoses[] | select(.level == "error")'

exit codes:
  0  nothing is wrong, or only notices
  1  a warning
  2  an error
  3  the doctor could not look
""",
    lambda _parser: None,
    _run,
)
