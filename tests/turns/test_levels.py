"""Tests of how many queues and priorities a worker remembers."""

from __future__ import annotations

from jobqueue.backends.sql.claims.turns import MOST_REMEMBERED
from jobqueue.testing.contract.fairness import fair
from jobqueue.testing.contract.harness import draft, put_all


def test_a_claim_keeps_its_own_levels_when_it_forgets_the_others(queue):
    levels = queue.limited.turns._levels
    for known in (MOST_REMEMBERED - 1, MOST_REMEMBERED):
        levels.update({(f"queue {number}", 5): None for number in range(known)})
        jobs = put_all(queue, *(draft(fair_key="a", priority=number) for number in (1, 5, 7)))
        assert [one.id for one in queue.cycle("me", (), fair(3)).claims] == jobs
    assert len(levels) < MOST_REMEMBERED
