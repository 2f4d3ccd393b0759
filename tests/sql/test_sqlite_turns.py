"""Tests of atomic jobs of one process, which take turns at SQLite's only write lock."""

from __future__ import annotations

import ctypes
import os
import threading
import time

import pytest
from django.db import connections

from jobqueue.backends.sqlite import lock as sqlite_lock
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy, Interrupted
from jobqueue.models import Job
from jobqueue.testing.contract.harness import put
from tests.conftest import make_sql_backend

pytestmark = pytest.mark.sqlite


@pytest.fixture
def backend(databases):
    return make_sql_backend("default", None)


def in_threads(count, work):
    """Run work in threads that close their connections, and return what they raised."""
    raised = []

    def run(number):
        try:
            work(number)
        except Exception as error:
            raised.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return raised


def test_many_threads_write_one_after_another(backend):
    inside, most = [], []

    def work(number):
        for _ in range(5):
            with backend.atomic_attempt():
                inside.append(number)
                most.append(len(inside))
                put(backend)
                inside.remove(number)

    assert in_threads(20, work) == []
    assert (max(most), Job.objects.count()) == (1, 100)


def test_who_waits_too_long_for_the_others_says_so(backend, settings):
    settings.JOBQUEUE = {"BUSY_TIMEOUT": 0.2}
    ended = threading.Event()

    def work(number):
        if number:
            try:
                with backend.atomic_attempt():
                    pass
            finally:
                ended.set()
        else:
            ended.wait(30)

    with backend.atomic_attempt():
        (error,) = in_threads(2, work)
    assert isinstance(error, DatabaseBusy)
    assert "atomic jobs" in str(error)


def test_inside_a_transaction_nobody_waits_for_a_turn(backend):
    """Whoever has the turn may wait for the lock that this transaction holds."""
    holding, go_on = threading.Event(), threading.Event()

    def work(_):
        with sqlite_lock.turn(connections["default"]):
            holding.set()
            go_on.wait(30)

    thread = threading.Thread(target=in_threads, args=(1, work))
    thread.start()
    holding.wait(30)
    began = SYSTEM.monotonic()
    with backend.session.write_transaction(), backend.atomic_attempt():
        pass
    assert SYSTEM.monotonic() - began < 10
    go_on.set()
    thread.join(30)


def test_an_interruption_at_any_moment_leaves_the_turn_to_others(backend):
    """As an executor does: one interruption at a time, and after it, it gives up whatever its thread may still have."""
    done, is_at_work = threading.Event(), [False]
    connection = connections["default"]

    def take_turns():
        is_at_work[0] = True
        while not done.is_set():
            with sqlite_lock.turn(connection):
                pass

    def work():
        while not done.is_set():
            try:
                take_turns()  # a call: of a loop in here, the jump back to its beginning would not be guarded
            except Interrupted:
                sqlite_lock.give_up_turn()

    def until_at_work():
        while not is_at_work[0]:
            assert SYSTEM.monotonic() < end + 20, "the interruption before is not over"
            time.sleep(0)

    thread = threading.Thread(target=work)
    thread.start()
    end = SYSTEM.monotonic() + 2
    while SYSTEM.monotonic() < end:
        until_at_work()
        is_at_work[0] = False
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupted))
        if sqlite_lock._turn.acquire(timeout=20):
            sqlite_lock._turn.release()
        else:
            pytest.fail("the turn is lost")
    until_at_work()
    done.set()
    thread.join(30)


def test_a_child_has_a_turn_of_its_own(backend):
    with sqlite_lock.turn(connections["default"]):
        held_by = threading.Thread(target=lambda: None)
        held_by.start()
        held_by.join()
        child = os.fork()
        if not child:
            free = threading.Thread(target=lambda: os._exit(0 if sqlite_lock._turn.acquire(timeout=5) else 1))
            free.start()
            free.join(10)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


def test_jobs_that_hold_the_lock_one_after_another_leave_room_for_others(backend):
    """As a worker's renewals need it: whoever tries for the lock from outside gets it within a few turns."""
    over, turns = threading.Event(), []

    def work(_):
        while not over.is_set():
            with backend.atomic_attempt():
                turns.append(SYSTEM.monotonic())
                over.wait(0.05)

    thread = threading.Thread(target=in_threads, args=(1, work))
    thread.start()
    waited = []
    for _ in range(6):
        before = len(turns)
        put(backend)
        waited.append(len(turns) - before)
    over.set()
    thread.join(30)
    assert max(waited) <= 4
    assert Job.objects.count() == 6
