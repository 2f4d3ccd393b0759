"""Deployments: workers and rows of two releases in one table."""

from __future__ import annotations

import json
import signal
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import connection

from benchmarks.faults import release_jobs
from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Worker
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What, boot
from benchmarks.faults.with_jobs import with_jobs
from jobqueue.clock import SYSTEM, to_text
from jobqueue.ids import new_id

_NEW = with_jobs(release_jobs.__name__)
_OLD = with_jobs("benchmarks.faults.old_release_jobs")
#: What other programs write: the columns of the first release, and no others.
_CANONICAL = """
INSERT INTO job_queue (id, type, payload, idempotency_key, scheduled_at, created_at, updated_at)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


@fault("T27", "workers of two releases on one table")
def two_releases(lab: Laboratory) -> None:
    """Run an old and a new release on one table: each leaves what it doesn't know or can't read to the other."""
    old = [_worker(lab, _OLD)]
    _old_ones_leave_alone_what_they_do_not_know(lab)
    new = [_worker(lab, _NEW)]
    elders = {boot(pid) for pid in old[0].executors}
    while lab.goes_on():
        lab.enqueue("letter", 3)
        lab.enqueue("parcel", 3)
        lab.enqueue("short", 3)
        for kind, payload in (("letter", {"email": "b@example.com"}), ("short", {"seconds": 0.01})):
            _enqueue_as_others_do(lab, kind, payload)
        side, prefix = lab.rng.choice([(old, _OLD), (new, _NEW)])
        _replace(lab, side, prefix)
        elders |= {boot(pid) for pid in old[0].executors}
        lab.injected("a worker of one release replaced")
    for worker in old:
        _end(lab, worker)
    _bring_forward(lab)

    def look(_: Account) -> None:
        ran_by_old = {one.job for one in lab.told(What.END) if one.boot in elders}
        lab.findings["run by the old release"] = len(ran_by_old)
        lab.findings["given back for the new one"] = _history().count()
        endings = set(_history().values_list("ending", flat=True)) - {"released", "snoozed"}
        lab.expect(not endings, f"no attempt is counted against a job, some are {', '.join(sorted(endings))}")

    lab.afterwards(look)


def _worker(lab: Laboratory, prefix: tuple[str, ...]) -> Worker:
    return lab.crew.start(1, prefix=prefix, processes=1, concurrency=4, lease=lab.lease)[0]


def _old_ones_leave_alone_what_they_do_not_know(lab: Laboratory) -> None:
    """Expect that jobs of the new release wait while only the old one runs."""
    unknown, known = lab.enqueue("parcel", 3), lab.enqueue("short", 3)
    end = SYSTEM.monotonic() + 30
    while not lab.started(*known) and SYSTEM.monotonic() < end:
        lab.pause(0.05)
    lab.expect(lab.started(*known), "the old release runs what it knows, behind what it does not")
    rows = set(_jobs().filter(pk__in=unknown).values_list("status", "attempts", "fence"))
    lab.expect(rows == {("queued", 0, 0)}, f"what the old release does not know is left alone, there are {rows}")


def _enqueue_as_others_do(lab: Laboratory, kind: str, payload: dict[str, Any]) -> None:
    """Insert a row with the documented statement, as other programs do."""
    job, now = new_id(), to_text(SYSTEM.now())
    lab.ledger.note(What.TRYING, job, kind=kind, expects="completed")
    with connection.cursor() as cursor:
        cursor.execute(_CANONICAL, [job, kind, json.dumps(payload), None, now, now, now])
    lab.ledger.note(What.ACCEPTED, job)


def _replace(lab: Laboratory, side: list[Worker], prefix: tuple[str, ...]) -> None:
    """Stop a worker as a deployment does, and start its successor."""
    _end(lab, side.pop())
    side.append(_worker(lab, prefix))


def _end(lab: Laboratory, worker: Worker) -> None:
    worker.process.send_signal(signal.SIGTERM)
    status = worker.wait(60)
    lab.expect(status == 0, f"a worker that is replaced ends with 0, not with {status}")
    lab.crew.dismiss(worker)


def _bring_forward(lab: Laboratory) -> None:
    """Shorten the minute after which a too new payload is offered again, in a short run."""
    if lab.quick:
        _jobs().filter(status="queued").update(scheduled_at=SYSTEM.now() - timedelta(seconds=1))


def _jobs() -> Any:
    return apps.get_model("jobqueue", "Job")._default_manager


def _history() -> Any:
    return apps.get_model("jobqueue", "Attempt")._default_manager
