"""Tests of the record of a worker, and of when it counts as dead."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.records import Progress, WorkerRecord, WorkerState
from jobqueue.records.worker import NEWS_EVERY, SILENT_FOR
from jobqueue.testing.clock import NOON


def _worker(**values):
    known = {"owner": "host:1:nonce", "name": "mail", "host": "host", "pid": 1, "version": "0.1"}
    moments = {"started_at": NOON, "seen_at": NOON}
    return WorkerRecord(**(known | moments | {"processes": 1, "slots": 10} | values))


def test_a_worker_runs_serves_all_queues_and_is_idle_unless_it_says_otherwise():
    worker = _worker()
    assert (worker.state, worker.queues, worker.types, worker.busy) == (WorkerState.RUNNING, None, (), 0)


@given(silence=st.timedeltas(timedelta(0), timedelta(days=30)))
def test_a_worker_is_alive_until_it_has_been_silent_for_too_long(silence):
    assert _worker().is_alive(NOON + silence) is (silence < SILENT_FOR)


def test_a_clock_that_was_set_back_kills_no_worker():
    assert _worker().is_alive(NOON - timedelta(hours=2))


def test_a_stopping_worker_is_alive_as_long_as_it_is_heard_of():
    assert _worker(state=WorkerState.STOPPING).is_alive(NOON)


@pytest.mark.parametrize(
    ("queues", "queue", "type_name", "is_served"),
    [
        (None, "images", "resize", True),
        (("images", "mail"), "images", "resize", True),
        (("mail",), "images", "resize", False),
        (("mail",), None, "resize", True),
        ((), "images", None, False),
        (None, "images", "greet", False),
        (None, "", None, True),
        (("mail",), "", None, False),
        (None, None, "", False),
        ((), None, None, True),
    ],
)
def test_it_serves_its_queues_and_types_and_takes_their_jobs_until_it_stops(queues, queue, type_name, is_served):
    worker = _worker(queues=queues, types=("resize",))
    assert worker.serves(queue, type_name) is worker.takes(queue, type_name) is is_served
    stopping = _worker(queues=queues, types=("resize",), state=WorkerState.STOPPING)
    assert stopping.serves(queue, type_name) is is_served
    assert not stopping.takes(queue, type_name)


def test_news_come_several_times_before_silence_counts():
    assert SILENT_FOR >= 3 * NEWS_EVERY


@pytest.mark.parametrize(("value", "name"), [(_worker(), "busy"), (Progress("01J", 1, "me", "{}"), "report")])
def test_a_value_cannot_be_changed(value, name):
    with pytest.raises((FrozenInstanceError, AttributeError)):
        setattr(value, name, 9)
