"""Tests of what `why` says about jobs of fair queues."""

from __future__ import annotations

import pytest

from jobqueue.testing.contract.fairness import fair
from jobqueue.testing.contract.harness import draft, put_all


@pytest.fixture
def fair_queue(queue, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"QUEUES": {"default": {"fair": "tenant"}}}
    return queue


def jobs(queue, keys):
    return put_all(queue, *(draft("send_welcome", fair_key=key) for key in keys))


def turn(said):
    return next((one["text"] for one in said.json["reasons"] if one["code"] == "behind_turns"), None)


def test_why_says_how_many_turns_are_due_before_a_job(run, fair_queue):
    found = jobs(fair_queue, ["acme", "acme", "acme", "beta", "", "zeta"])
    request = fair(1, types=frozenset({"send_welcome"}))
    assert len(fair_queue.cycle("me", (), request).claims) == 1
    assert turn(run("why", found[2], "--json")) == (
        "Its queue takes turns by tenant: 3 others are due before acme, which has 1 due job before this one."
    )
    assert turn(run("why", found[5], "--json")) == "Its queue takes turns by tenant: 2 others are due before zeta."
    assert turn(run("why", found[4], "--json")) == (
        "Its queue takes turns by tenant: 1 other is due before the jobs without a value."
    )
    assert turn(run("why", found[3], "--json")) is None
    assert turn(run("why", found[0], "--json")) is None


def test_why_says_nothing_of_turns_in_other_queues(run, queue):
    found = jobs(queue, ["acme", "beta"])
    assert turn(run("why", found[1], "--json")) is None
