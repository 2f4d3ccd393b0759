"""Tests of queues with a capacity: what happens to a job that has no room, on each way into the queue."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.mail import EmailMessage
from django.db import connections

from jobqueue import QueueFull, aenqueue, enqueue_many, signals
from jobqueue.api import capacity
from jobqueue.backends import current
from jobqueue.clock import SYSTEM
from jobqueue.contrib.email.backend import EmailBackend
from jobqueue.contrib.webhooks.jobs import webhook_dispatch
from jobqueue.policy.settling import completed
from jobqueue.records import Admission, ClaimRequest, Filter
from jobqueue.records.gauge import Gauge
from tests.app.jobs import send_welcome

LEASE = timedelta(seconds=60)


@pytest.fixture(autouse=True)
def _no_depths():
    capacity.forget()
    yield
    capacity.forget()


@pytest.fixture
def bounded(settings, queue):
    """Give the queue "small" a capacity of three."""

    def bound(when_full, **options):
        queues = {"small": {"capacity": 3, "when_full": when_full, **options}}
        settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": queues}

    return bound


def _put(number=1, **options):
    return [send_welcome.using(queue="small", **options).enqueue(place) for place in range(number)]


def _waiting():
    return current().jobs.count(Filter(queues=frozenset({"small"})))


def _take(number=1):
    request = ClaimRequest(limit=number, types=frozenset({"send_welcome"}), lease=LEASE)
    return current().cycle("me", (), request).claims


def test_a_queue_without_a_capacity_reads_no_gauge(settings, queue, monkeypatch):
    monkeypatch.setattr(type(current().gauges), "read", lambda *_: pytest.fail("read a gauge"))
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"accepting": {"capacity": 1}}}
    enqueue_many([send_welcome.using(queue=name).draft(7) for name in ("accepting", "other") for _ in range(3)])


def test_raise_refuses_what_has_no_room(bounded):
    bounded("raise")
    _put(3)
    with pytest.raises(
        QueueFull, match=r"^The queue 'small' is full: about 3 jobs wait, and its capacity is 3\."
    ) as full:
        _put()
    assert (full.value.queue, full.value.depth, full.value.capacity) == ("small", 3, 3)
    assert _waiting() == 3


def test_raise_refuses_many_drafts_all_or_none(bounded):
    bounded("raise")
    drafts = [send_welcome.using(queue="small").draft(7) for _ in range(4)]
    with pytest.raises(QueueFull, match="the 4 jobs were not enqueued"):
        enqueue_many([send_welcome.draft(7), *drafts])
    assert current().jobs.count(Filter()) == 0
    assert len(enqueue_many(drafts[:3])) == 3


def test_shed_drops_what_is_less_urgent_and_keeps_the_rest(bounded):
    bounded("shed")
    told = []

    def hear(**facts):
        told.append((facts["job_type"], facts["queue"], facts["priority"]))

    signals.shed.connect(hear)
    try:
        _put(3, priority=9)
        (shed,) = _put(priority=6)
        (kept,) = _put(priority=5)
    finally:
        signals.shed.disconnect(hear)
    assert (shed.id, shed.outcome, shed.created, shed.is_shed) == (None, Admission.SHED, False, True)
    assert kept.created
    assert told == [("send_welcome", "small", 6)]
    assert _waiting() == 4
    assert current().gauges.read("small").shed == 1


def test_shed_keeps_of_many_drafts_the_urgent_and_as_many_others_as_fit(bounded):
    bounded("shed")
    drafts = [send_welcome.using(queue="small", priority=place).draft(7) for place in (9, 1, 8, 5, 7)]
    assert [one.is_shed for one in enqueue_many(drafts)] == [False, False, True, False, True]
    assert _waiting() == 3


def test_a_rolled_back_shed_is_not_told(bounded):
    bounded("shed")
    _put(3)
    with pytest.raises(RuntimeError), current().atomic():
        _put(priority=9)
        raise RuntimeError
    assert current().gauges.read("small").shed == 0


def test_block_waits_for_room(bounded):
    bounded("block", block_for=20)
    _put(3)

    def work():
        time.sleep(0.2)
        _take()
        connections.close_all()

    worker = threading.Thread(target=work)
    worker.start()
    (receipt,) = _put()
    worker.join()
    assert receipt.created
    assert _waiting() == 4


def test_block_gives_up_after_its_time(bounded):
    bounded("block", block_for=0.3)
    _put(3)
    with pytest.raises(QueueFull, match=r"it has had no room for 0\.3 s"):
        _put()


def test_block_raises_at_once_inside_a_transaction(bounded):
    bounded("block")
    began = SYSTEM.monotonic()
    with current().atomic():
        _put(3)
        with pytest.raises(QueueFull, match="inside a transaction doesn't wait"):
            _put()
    assert SYSTEM.monotonic() - began < 5
    assert _waiting() == 3


def test_block_raises_at_once_for_more_than_ever_fit(bounded):
    bounded("block")
    with pytest.raises(QueueFull, match="never fit at once"):
        enqueue_many([send_welcome.using(queue="small").draft(7) for _ in range(4)])


def test_a_rolled_back_transaction_gives_its_room_back(bounded):
    bounded("raise")
    with pytest.raises(QueueFull), current().atomic():
        _put(3)
        _put()
    assert len(_put(3)) == 3
    assert _waiting() == 3


def test_an_open_transaction_counts_its_own_jobs_which_no_sample_sees(bounded, monkeypatch):
    bounded("raise")
    monkeypatch.setattr(type(current().gauges), "read", lambda *_: Gauge("small", 0, timedelta(0)))
    monkeypatch.setattr(capacity, "READ_EVERY", 0)
    with pytest.raises(QueueFull), current().atomic():
        _put(3)
        _put()


def test_a_follow_up_of_a_completed_job_is_never_refused(bounded):
    bounded("raise")
    _put(3)
    (claim,) = _take()
    children = tuple(send_welcome.using(queue="small").draft(7) for _ in range(5))
    cycle = current().cycle("me", [completed(claim, None)._replace(children=children)])
    assert cycle.refused == ()
    assert [one.receipt.created for one in cycle.followed] == [True] * 5


def test_e_mails_are_refused_or_fail_silently(settings, queue):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"*": {"capacity": 1, "when_full": "raise"}}}
    messages = [EmailMessage("subject", "text", "a@example.com", ["b@example.com"]) for _ in range(2)]
    with pytest.raises(QueueFull):
        EmailBackend().send_messages(messages)
    assert EmailBackend(fail_silently=True).send_messages(messages) == 0
    assert EmailBackend().send_messages(messages[:1]) == 1


def test_a_webhook_is_refused_like_any_job(settings, queue):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"webhooks": {"capacity": 1, "when_full": "raise"}}}
    webhook_dispatch.enqueue(endpoint_id=1, event="order.paid")
    with pytest.raises(QueueFull):
        webhook_dispatch.enqueue(endpoint_id=1, event="order.paid")


def test_a_sample_of_a_worker_decides_and_own_jobs_are_added(bounded):
    bounded("raise")
    _put(1)
    current().gauges.sample({"small": 3}, timedelta(0))
    capacity.forget()
    _put(2)
    with pytest.raises(QueueFull):
        _put()


async def _beats(done):
    """Count the turns of the event loop until something is done."""
    count = 0
    while not done.is_set():
        await asyncio.sleep(0.01)
        count += 1
    return count


def test_async_code_waits_in_its_event_loop(bounded):
    bounded("block", block_for=0.5)
    _put(3)

    async def main():
        done = asyncio.Event()
        beats = asyncio.create_task(_beats(done))
        with pytest.raises(QueueFull, match="no room for"):
            await aenqueue("send_welcome", {"user_id": 7}, queue="small")
        done.set()
        return await beats

    assert async_to_sync(main)() > 15
    assert not capacity.is_async.get()
