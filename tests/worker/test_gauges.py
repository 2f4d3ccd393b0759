"""Tests of the samples that a worker takes of queues with a capacity."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jobqueue.testing.contract.harness import draft, put_all
from jobqueue.worker.supervisor.duties.gauges import Gauges


@pytest.fixture
def gauges(queue, settings):
    """Make the duty of a worker that samples queues, with some of the settings."""

    def make(**queues):
        settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": queues}
        return Gauges(SimpleNamespace(backend=queue))

    return make


def test_without_a_capacity_there_is_nothing_to_do(gauges):
    assert gauges(mail={"capacity": None}).act() == float("inf")


def test_queues_are_sampled_by_name_and_by_pattern_and_until_they_are_empty(gauges, queue):
    part = gauges(**{"mail": {"capacity": 9}, "im*": {"capacity": 2}})
    put_all(queue, *(draft(queue="images") for _ in range(3)), draft(queue="other"))
    assert part.act() >= 1.0
    assert {one.queue: one.queued for one in queue.gauges.all()} == {"mail": 0, "images": 2}


def test_a_sample_is_taken_once_a_second(gauges, queue):
    part = gauges(mail={"capacity": 9})
    part.act()
    put_all(queue, draft(queue="mail"))
    part.act()
    assert queue.gauges.read("mail").queued == 0
