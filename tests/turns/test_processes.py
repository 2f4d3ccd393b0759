"""Tests of fair turns across worker processes."""

from __future__ import annotations

from collections import Counter

from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft
from jobqueue.testing.contract.limiting import at_once
from tests.limits.test_processes import Claimers
from tests.worker.harness import until


def test_processes_share_the_turns(queue, alias):
    """One tenant with many jobs, spread over many keys of a limit, delays few of the jobs of others."""
    many = [
        draft(tenant="large", fair_key="large", concurrency_key=f'{{"account":"{number}"}}') for number in range(3_000)
    ]
    queue.enqueue(many)
    ours = Claimers(alias, 4, 0.002, at_once(1, key="account"), fair=True)
    try:
        ours.start(3)
        until(lambda: len(ours.events) > 200, 30, "claims")
        names = [f"small-{number}" for number in range(10)]
        queue.enqueue([draft(tenant=name, fair_key=name) for name in names for _ in range(10)])
        until(lambda: _claimed(ours)["small"] >= 100, 30, "the jobs of small tenants")
        taken = [key.split("-")[0] for _, sign, _, key, _ in sorted(ours.events) if sign == "+"]
    finally:
        ours.stop()
    first = taken.index("small")
    among = Counter(taken[first : len(taken) - taken[::-1].index("small")])
    assert among["small"] == 100
    assert among["large"] <= 40, among  # ten rounds, and what three claims took at once
    assert queue.jobs.count(Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))) == 0


def _claimed(ours):
    return Counter(key.split("-")[0] for _, sign, _, key, _ in list(ours.events) if sign == "+")
