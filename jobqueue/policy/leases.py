"""What a sweep makes of leases that ran out. Pure."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.policy.retry import decide_lease_lost
from jobqueue.policy.settling import settled
from jobqueue.records import Attempt, Ending, Expired, Failure, Settlement

#: A lease is renewed three times in its length; shorter ones would be lost to any hiccup, longer ones are no news.
SHORTEST_LEASE = timedelta(seconds=2)
LONGEST_LEASE = timedelta(hours=1)


def settle_expired(expired: Expired) -> Settlement:
    """Turn one lease that ran out into the settlement its owner can no longer offer."""
    decision = decide_lease_lost(
        Attempt(expired.attempt, expired.max_retries), crash_count=expired.crash_count, company=expired.company
    )
    failure = Failure.of(Ending.LEASE_LOST, message=f"the lease of {expired.owner} ran out: no news from it in time")
    return settled(expired, decision, failure)
