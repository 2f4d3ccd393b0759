"""The settlement of claims whose worker is silent or dead. Pure."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.retry import decide_lease_lost, decide_worker_dead
from jobqueue.policy.settling import settled
from jobqueue.records import AttemptCount, Ending, Failure, OverdueLease, Settlement

#: A lease is renewed three times in its length. Shorter ones would be lost to short delays, and longer ones would
#: hide dead workers for too long.
SHORTEST_LEASE = timedelta(seconds=2)
LONGEST_LEASE = timedelta(hours=1)


def settle_overdue(overdue: OverdueLease) -> Settlement:
    """Return the settlement of an expired lease, which its owner can no longer offer."""
    decision = decide_lease_lost(
        AttemptCount(overdue.attempt, overdue.max_retries), crash_count=overdue.crash_count, company=overdue.company
    )
    failure = Failure.of(Ending.LEASE_LOST, message=f"the lease of {overdue.owner} ran out: it was not renewed in time")
    return settled(overdue, decision, with_fingerprint(overdue.type, failure))


def settle_dead(overdue: OverdueLease) -> Settlement:
    """Return the settlement of a claim whose worker is proved dead, however long its lease still runs."""
    decision = decide_worker_dead(
        AttemptCount(overdue.attempt, overdue.max_retries), crash_count=overdue.crash_count, company=overdue.company
    )
    failure = Failure.of(Ending.CRASHED, message=f"its worker {overdue.owner} died while it ran")
    return settled(overdue, decision, with_fingerprint(overdue.type, failure))
