"""Tests of ULIDs, sorted by creation: within a millisecond, across threads and forks, with a clock set back."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from jobqueue.ids import UlidFactory, moment_of, new_id
from jobqueue.testing import VirtualClock

ROOT = Path(__file__).resolve().parents[2]

# In a process of its own, for a fork of the suite's would take along whatever threads other tests have left.
FORK = """
import os
from jobqueue.ids import new_id

def ids_of_a_child(count):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, " ".join(new_id() for _ in range(count)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        ids = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return ids

before = new_id()
new_id._lock.acquire()  # as another thread of the parent may, at the moment of the fork
first = ids_of_a_child(500)
new_id._lock.release()
print(before)
print(first)
print(ids_of_a_child(500))
print(" ".join(new_id() for _ in range(500)))
"""


def _rising(ids):
    return all(one < other for one, other in pairwise(ids))


def test_an_id_is_a_ulid_of_the_present_moment(clock):
    made = ULID.from_str(UlidFactory(clock)())
    assert made.datetime == clock.now()


def test_ids_within_one_millisecond_rise(clock):
    make = UlidFactory(clock)
    ids = [make() for _ in range(10_000)]
    assert _rising(ids)
    assert {one[:10] for one in ids} == {ids[0][:10]}


def test_ids_rise_when_the_clock_steps_back(clock):
    make = UlidFactory(clock)
    before = make()
    clock.step_back(timedelta(hours=1))
    assert _rising([before, *(make() for _ in range(100))])


@given(steps=st.lists(st.integers(-10_000, 10_000), max_size=50))
def test_ids_rise_whatever_the_clock_does(steps):
    clock = VirtualClock()
    make = UlidFactory(clock)
    ids = [make()]
    for milliseconds in steps:
        clock.step_back(timedelta(milliseconds=milliseconds))
        ids.append(make())
    assert _rising(ids)


def test_a_spent_millisecond_borrows_from_the_next(clock, monkeypatch):
    make = UlidFactory(clock)
    make()
    monkeypatch.setattr(make, "_random", (1 << 40) - 2)
    last, borrowed = make(), make()
    assert last.endswith("Z" * 8)
    assert borrowed > last
    assert ULID.from_str(borrowed).datetime == clock.now() + timedelta(milliseconds=1)


@given(st.integers(0, 253_402_300_799_999), st.binary(min_size=10, max_size=10))
def test_the_moment_of_a_ulid_is_read_from_its_first_letters(milliseconds, dice):
    made = ULID.from_bytes(milliseconds.to_bytes(6) + dice)
    assert moment_of(str(made)) == made.datetime


@given(st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26) | st.text(max_size=30))
def test_any_id_has_a_moment_or_none(job_id):
    found = moment_of(job_id)
    assert found is None or job_id[0] in "01234567"


def test_ids_of_one_thread_rise_and_no_two_threads_share_one():
    start, made = threading.Barrier(8), [[] for _ in range(8)]

    def work(mine):
        start.wait()
        mine.extend(new_id() for _ in range(2_000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(_rising(mine) for mine in made)
    assert len({one for mine in made for one in mine}) == 8 * 2_000


def test_a_thread_that_follows_another_continues_its_order():
    made = []
    for _ in range(5):
        thread = threading.Thread(target=lambda: made.extend(new_id() for _ in range(100)))
        thread.start()
        thread.join()
    assert _rising(made)


def test_a_forked_child_makes_ids_of_its_own_that_follow_its_parents():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (before,), first, second, after = (line.split() for line in done.stdout.splitlines())
    assert all(_rising([before, *ids]) for ids in (first, second, after))
    assert len({before, *first, *second, *after}) == 1 + 3 * 500
