"""``stuck``: the running jobs that don't get on, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING
from jobqueue.cli.values import ago, counted, plain
from jobqueue.observe.questions.stuck import StuckJob, StuckReason, stuck_jobs

_COLUMNS = ("id", "type", "queue", "since", "reason", "worker")
_WORDS = {
    StuckReason.LEFT_OUT: "its row can't be run or ended: {}",
    StuckReason.LEASE_ENDED: "its worker stopped renewing the lease; the next sweep takes the job back",
    StuckReason.WORKER_SILENT: "its worker is silent; the job is taken back when the lease ends",
    StuckReason.OVER_TIME: "it runs longer than its time limit",
    StuckReason.NOT_STOPPING: "it was cancelled, and doesn't stop",
    StuckReason.NO_PROGRESS: "it reported progress, and then nothing for ten minutes",
}


def _run(_options: dict[str, Any], console: Console) -> int:
    backend = current()
    found = stuck_jobs(backend)
    if console.as_json:
        jobs = [plain(one) | {"text": _text(one)} for one in found.jobs]
        console.document({"jobs": jobs, "looked_at": found.looked_at, "is_part": found.is_part})
    else:
        if found.jobs:
            now = backend.now()
            console.table(_COLUMNS, [_row(one, now) for one in found.jobs])
        for text in dict.fromkeys(f"{one.reason.value}: {_text(one)}." for one in found.jobs):
            console.say(text)
        looked_at = counted(found.looked_at, "running job", capped=found.is_part)
        console.say(f"{looked_at} looked at, {len(found.jobs):,} stuck.")
    return WARNING if found.jobs else OK


def _row(one: StuckJob, now: datetime) -> list[str]:
    return [one.id, one.type or "-", one.queue or "-", ago(one.since, now), one.reason.value, one.worker or "-"]


def _text(one: StuckJob) -> str:
    return _WORDS[one.reason].format(one.detail)


STUCK = Subcommand(
    "stuck",
    "show the running jobs that don't get on, and why",
    """\
A running job is stuck if its worker died or is silent, if it runs longer than its time limit, if it was cancelled a
minute ago, or if it reported progress and then nothing for ten minutes. Workers take back the jobs of dead workers by
themselves. For queued jobs that nobody takes, see "jobqueue status" and "jobqueue why".

examples:
  manage.py jobqueue stuck
  manage.py jobqueue stuck --json | jq '.jobs[].id'

exit codes:
  0  no job is stuck
  1  a job is stuck
  3  the jobs can't be read
""",
    lambda _parser: None,
    _run,
)
