"""Tests of signals for events: in order, to each receiver, in spite of failing ones."""

from __future__ import annotations

import queue
import threading

import pytest

from jobqueue import signals
from jobqueue.observe import announce
from jobqueue.observe.announce import Receivers, is_anybody_listening, send
from jobqueue.records import Event, EventKind

SIGNALS = {
    EventKind.STARTED: signals.started,
    EventKind.PROGRESSED: signals.progressed,
    EventKind.COMPLETED: signals.completed,
    EventKind.RETRIED: signals.retried,
    EventKind.DEAD_LETTERED: signals.dead_lettered,
    EventKind.CANCELLED: signals.cancelled,
    EventKind.LEASE_LOST: signals.lease_lost,
    EventKind.FOLLOWED: signals.enqueued,
}
SILENT = [kind for kind in EventKind if kind not in SIGNALS]
PATIENCE = 20


@pytest.fixture
def connect():
    """A function that connects a receiver for the length of a test."""
    made = []

    def connect(signal, receiver):
        signal.connect(receiver, weak=False)
        made.append((signal, receiver))

    yield connect
    for signal, receiver in made:
        signal.disconnect(receiver)


@pytest.mark.parametrize("kind", SIGNALS)
def test_an_event_is_sent_to_the_receivers_of_its_signal_alone(connect, kind):
    heard = []
    for one, signal in SIGNALS.items():
        connect(signal, lambda one=one, **facts: heard.append((one, facts)))
    event = Event(kind, "01J", "resize", "images", 2, 3, "host", 1.5, 10.0, "why", "OSError", "", '{"percent":5}')
    send(event)
    ((where, facts),) = heard
    assert where is kind
    assert (facts.pop("signal"), facts.pop("sender")) == (SIGNALS[kind], None)
    assert facts == {name: value for name, value in event._asdict().items() if name != "kind"}


@pytest.mark.parametrize("kind", SILENT)
def test_an_event_without_a_signal_is_sent_to_nobody(connect, kind):
    heard = []
    for signal in SIGNALS.values():
        connect(signal, lambda **facts: heard.append(facts))
    send(Event(kind, "01J"))
    assert heard == []


def test_a_failing_receiver_harms_neither_the_others_nor_the_sender(connect):
    heard = []

    def failing(**_):
        raise ZeroDivisionError

    connect(signals.completed, failing)
    connect(signals.completed, lambda job_id, **_: heard.append(job_id))
    send(Event(EventKind.COMPLETED, "01J"))
    assert heard == ["01J"]


def test_the_workers_signals_are_listened_to_or_not(connect):
    assert not is_anybody_listening()
    connect(signals.retried, lambda **_: None)
    assert is_anybody_listening()


def test_receivers_hear_of_events_in_order_and_in_a_thread_of_their_own(connect):
    heard = queue.SimpleQueue()
    for kind in (EventKind.STARTED, EventKind.COMPLETED):
        connect(SIGNALS[kind], lambda job_id, **_: heard.put((job_id, threading.current_thread())))
    receivers = Receivers()
    receivers.tell([Event(EventKind.STARTED, "1"), Event(EventKind.COMPLETED, "1")])
    receivers.tell([Event(EventKind.STARTED, "2")])
    found = [heard.get(timeout=PATIENCE) for _ in range(3)]
    assert [job_id for job_id, _ in found] == ["1", "1", "2"]
    assert {thread.name for _, thread in found} == {"jobqueue-receivers"}
    assert threading.main_thread() not in {thread for _, thread in found}


def test_an_event_may_come_as_the_list_that_travelled(connect):
    heard = queue.SimpleQueue()
    connect(signals.retried, lambda job_id, delay, **_: heard.put((job_id, delay)))
    Receivers().tell([["retried", "01J", "resize", "images", 1, 3, "host", 1.5, 10.0]])
    assert heard.get(timeout=PATIENCE) == ("01J", 10.0)


def test_after_a_failing_receiver_the_next_event_is_told(connect):
    heard = queue.SimpleQueue()

    def failing(job_id, **_):
        heard.put(job_id)
        raise SystemError

    connect(signals.completed, failing)
    receivers = Receivers()
    receivers.tell([Event(EventKind.COMPLETED, "1")])
    receivers.tell([Event(EventKind.COMPLETED, "2")])
    assert [heard.get(timeout=PATIENCE) for _ in range(2)] == ["1", "2"]


def test_a_slow_receiver_keeps_nobody_waiting(connect):
    free, heard = threading.Event(), queue.SimpleQueue()

    def slow(job_id, **_):
        free.wait(PATIENCE)
        heard.put(job_id)

    connect(signals.completed, slow)
    receivers = Receivers()
    receivers.tell(Event(EventKind.COMPLETED, str(number)) for number in range(3))
    assert heard.empty()
    free.set()
    assert [heard.get(timeout=PATIENCE) for _ in range(3)] == ["0", "1", "2"]


def test_of_a_follow_up_job_that_could_not_be_stored_no_signal_is_sent(connect):
    heard = []
    connect(SIGNALS[EventKind.FOLLOWED], lambda **facts: heard.append(facts))
    send(Event(EventKind.FOLLOWED, "01J", "resize", error="its key belongs to a job of another type"))
    assert heard == []


def test_signals_that_no_receiver_keeps_up_with_are_dropped_and_that_is_said_once(connect, monkeypatch, caplog):
    go_on, heard = threading.Event(), []
    monkeypatch.setattr(announce, "_MOST_WAITING", 3)
    connect(SIGNALS[EventKind.COMPLETED], lambda job_id, **_: heard.append(job_id) or go_on.wait(10))
    receivers = announce.Receivers()
    receivers.tell([Event(EventKind.COMPLETED, str(number), "resize") for number in range(20)])
    go_on.set()
    receivers.finish()
    assert heard == [str(number) for number in range(len(heard))]
    assert 3 <= len(heard) < 20
    assert [record.message for record in caplog.records] == [
        "Receivers of signals are slower than the jobs: some signals are not sent"
    ]
