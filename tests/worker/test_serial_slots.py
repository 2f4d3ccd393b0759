"""Tests of serial slots: one thread goes from item to item, and others step in if it is stuck."""

from __future__ import annotations

import sys
import threading

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.worker.executor import serial_slots
from jobqueue.worker.executor.outgoing import Outgoing
from jobqueue.worker.executor.serial_slots import SerialSlots
from jobqueue.worker.protocol.wire import Inbox, Word
from tests.worker.harness import until


class Bench:
    """Turns whose work is to wait until an event lets it go, or to fall through."""

    def __init__(self, channel, size=10):
        self.outgoing, self.done, self.threads = Outgoing(channel[0], full=1_000), [], set()
        self.began, self.finished = threading.Semaphore(0), threading.Semaphore(0)
        self.turns = SerialSlots(size, self._work, lambda: None, self.outgoing)

    def _work(self, item):
        self.threads.add(threading.get_ident())
        self.began.release()
        if isinstance(item, threading.Event):
            assert item.wait(30)
        else:
            self.outgoing.keep([item, 1])
        self.done.append(item)
        self.finished.release()

    def look_until(self, is_so):
        """Look as an executor does, whenever it is time, until something is so."""
        end = SYSTEM.monotonic() + 30
        while not is_so():
            assert SYSTEM.monotonic() < end
            self.turns.look()


def happens(semaphore, count=1):
    return all(semaphore.acquire(timeout=10) for _ in range(count))


def test_one_thread_goes_on_from_each_to_the_next(channel, monkeypatch):
    monkeypatch.setattr(serial_slots, "LOOK_EVERY", 60.0)
    bench = Bench(channel)
    for start in range(0, 400, 4):
        bench.turns.submit(range(start, start + 4))
    assert happens(bench.finished, 400)
    assert bench.done == list(range(400))
    assert len(bench.threads) == 1


def test_what_is_submitted_while_nobody_works_is_worked_on(channel):
    bench = Bench(channel)
    for number in range(200):
        bench.turns.submit([number])
        assert happens(bench.finished)
    assert bench.done == list(range(200))


def test_who_does_not_get_on_has_others_step_in(channel):
    bench, gates = Bench(channel), [threading.Event() for _ in range(3)]
    bench.turns.submit([*gates, "last"])
    bench.look_until(lambda: "last" in bench.done)
    assert len(bench.threads) == 4
    for gate in gates:
        gate.set()
    assert happens(bench.finished, 4)


def test_there_are_never_more_threads_than_slots(channel):
    bench, gates = Bench(channel, size=2), [threading.Event() for _ in range(3)]
    bench.turns.submit(gates)
    assert happens(bench.began)
    bench.look_until(lambda: bench.began.acquire(blocking=False))
    end = SYSTEM.monotonic() + 5 * serial_slots.LOOK_EVERY
    bench.look_until(lambda: SYSTEM.monotonic() > end)
    assert not bench.began.acquire(blocking=False)
    for gate in gates:
        gate.set()
    assert happens(bench.finished, 3)


def test_who_had_a_turn_takes_no_other_while_somebody_waits_for_one(channel):
    bench, first, second = Bench(channel), threading.Event(), threading.Event()
    bench.turns.submit([first, second, "last"])
    assert happens(bench.began)
    bench.look_until(lambda: bench.began.acquire(blocking=False))
    first.set()
    until(lambda: bench.turns._idle or "last" in bench.done, what="the first rests, or goes on")
    first_then = list(bench.done)
    second.set()
    assert happens(bench.finished, 3)
    assert first_then == [first]
    assert bench.done == [first, second, "last"]


def test_who_is_to_stop_before_it_began_is_taken_at_once(channel, monkeypatch):
    monkeypatch.setattr(serial_slots, "LOOK_EVERY", 60.0)
    bench, gate = Bench(channel), threading.Event()
    bench.turns.submit([gate, "patient", "stopped"])
    assert happens(bench.began)
    bench.turns.hurry("stopped")
    assert happens(bench.finished)
    assert bench.done == ["stopped"]
    gate.set()
    assert happens(bench.finished, 2)


def test_all_that_are_to_stop_before_they_began_are_taken_at_once(channel, monkeypatch):
    monkeypatch.setattr(serial_slots, "LOOK_EVERY", 60.0)
    bench, gate, stopped = Bench(channel), threading.Event(), list(range(30))
    bench.turns.submit([gate, *stopped])
    assert happens(bench.began)
    for item in stopped:
        bench.turns.hurry(item)
    assert happens(bench.finished, 30)
    assert sorted(bench.done) == stopped
    gate.set()
    assert happens(bench.finished)


def test_to_hurry_what_does_not_wait_does_nothing(channel):
    bench = Bench(channel)
    bench.turns.hurry("unknown")
    bench.turns.submit(["only"])
    assert happens(bench.finished)
    bench.turns.hurry("only")
    bench.turns.submit(["next"])
    assert happens(bench.finished)
    assert bench.done == ["only", "next"]


def test_outcomes_go_together_when_nothing_waits(channel, monkeypatch):
    monkeypatch.setattr(serial_slots, "LOOK_EVERY", 60.0)
    bench = Bench(channel)
    bench.turns.submit("abcde")
    assert list(Inbox().feed(channel[1].recv(4096))) == [(Word.OUTCOMES, [[one, 1] for one in "abcde"])]


def test_an_outcome_does_not_wait_for_one_that_takes_long(channel):
    bench, gate = Bench(channel), threading.Event()
    bench.turns.submit(["a", gate])
    bench.look_until(lambda: not bench.outgoing.pending and happens(bench.began, 2))
    assert list(Inbox().feed(channel[1].recv(4096))) == [(Word.OUTCOMES, [["a", 1]])]
    gate.set()
    assert happens(bench.finished, 2)


def test_nothing_is_due_while_nothing_waits(channel):
    bench = Bench(channel)
    assert bench.turns.due == NEVER
    bench.turns.submit(["a"])
    assert bench.turns.due < NEVER
    assert happens(bench.finished)
    bench.look_until(lambda: bench.turns.due == NEVER)


def test_late_outcomes_are_those_that_were_there_at_the_last_call(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=2)
    outgoing.flush_late()
    outgoing.keep(["a", 1])
    outgoing.flush_late()
    assert outgoing.pending
    outgoing.flush()
    outgoing.keep(["b", 1])
    outgoing.flush_late()
    assert outgoing.pending
    outgoing.keep(["c", 1])
    outgoing.flush_late()
    assert not outgoing.pending
    assert list(Inbox().feed(theirs.recv(4096))) == [
        (Word.OUTCOMES, [["a", 1]]),
        (Word.OUTCOMES, [["b", 1], ["c", 1]]),
    ]


def test_who_hurries_waits_for_nobody_though_others_are_taken_meanwhile(channel, monkeypatch):
    monkeypatch.setattr(serial_slots, "LOOK_EVERY", 60.0)
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(150):
            bench, gate = Bench(channel), threading.Event()
            bench.turns.submit([gate, *range(30)])
            assert happens(bench.began)
            for item in range(30):
                bench.turns.hurry(item)
            assert happens(bench.finished, 30)
            gate.set()
            bench.turns.close()
            channel[1].recv(1 << 18)  # else nothing more could be sent some day
    finally:
        sys.setswitchinterval(switching)
