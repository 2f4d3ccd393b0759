"""The claims of a backend, as the harness's profile of owners that are bounded by leases and fences."""

from __future__ import annotations

import time
from datetime import timedelta

from due_work_harness.profiles.bounded_ownership import FencedOwnership

from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import (
    Again,
    ClaimRequest,
    Dead,
    Ending,
    Failure,
    Later,
    Progress,
    Stopped,
)
from tests.due_work.jobs import note

LEASE = timedelta(seconds=60)
FAILURE = Failure.of(Ending.FAILED, error_class="OSError", message="disk on fire")


def make_claimable():
    return note.enqueue(name="a note").id


def claim():
    request = ClaimRequest(limit=1, types=frozenset({"due.note"}), lease=LEASE)
    claims = backends.current().cycle("a worker", (), request).claims
    return (claims[0].id, claims[0]) if claims else None


def store(settlement):
    return not backends.current().cycle("a worker", (settlement,)).refused


def complete(_job_id, token):
    return store(completed(token, "null"))


def complete_in_transaction(_job_id, token):
    backend = backends.current()
    with backend.atomic():
        backend.settle_in_transaction(completed(token, "null"))
    return True


def ended_as(decision):
    return lambda _job_id, token: store(settled(token, decision, FAILURE))


def renew(_job_id, token):
    return not backends.current().extend([token], timedelta(minutes=10)).lost


def release(_job_id, token):
    return store(released(token, "its worker stopped"))


def report(job_id, token):
    backend = backends.current()
    backend.progress([Progress(token.id, token.fence, token.owner, '{"percent": 50}')])
    return not backend.review([token]).lost


def expire_lease(job_id):
    Job.objects.filter(pk=job_id).update(lease_until=SYSTEM.now() - timedelta(hours=1))


def sweep(job_id):
    """Sweep as a worker does, which looks twice where the backend wants it to."""
    backend = backends.current()
    found = backend.sweep(settle_overdue)
    if found.look_again:
        time.sleep(backend.second_look.total_seconds())
        found = backend.sweep(settle_overdue)
    return next((one.move.value for one in found.ended if one.id == job_id), None)


def observe(job_id):
    return Job.objects.filter(pk=job_id).values().get()


OWNERSHIP = FencedOwnership(
    name="jobqueue",
    make_claimable=make_claimable,
    claim=claim,
    fenced_write=complete,
    other_fenced_writes={
        "completion in the handler's transaction": complete_in_transaction,
        "retry": lambda job_id, token: ended_as(Again(timedelta(0)))(job_id, token),
        "snooze": lambda job_id, token: ended_as(Later(timedelta(0)))(job_id, token),
        "dead letter": lambda job_id, token: ended_as(Dead("attempts used up"))(job_id, token),
        "cancel": lambda job_id, token: ended_as(Stopped("cancelled"))(job_id, token),
        "progress": report,
    },
    renew_lease=renew,
    expire_lease=expire_lease,
    reclaim_stalled=sweep,
    release_unchanged=release,
    observe=observe,
)
