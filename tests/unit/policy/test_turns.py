"""Tests of the decision whose turn it is."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jobqueue.policy.limits.limits import Candidate
from jobqueue.policy.turns import VirtualTimes, before, in_turns, missing
from jobqueue.records import ServedTurn

KEYS = "abcdef"


def lines_of(keys: str, number: int = 50) -> dict[str, list[Candidate]]:
    """Return lines with jobs of each key."""
    return {key: [Candidate(5, place, f"{key}{place:03}", "q", "t", None) for place in range(number)] for key in keys}


def serve(times, lines, most, admits=lambda one: True):
    """Take jobs in fair order, and store what was taken. Return the keys."""
    taken = []
    for key, job in in_turns(times, lines, admits):
        if len(taken) == most:
            break
        taken.append(key)
        lines[key].remove(job)
    times.recall(times.lines("q", 5, Counter(taken)))
    return "".join(taken)


@given(
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from([0.5, 1.0, 2.0, 5.0]), min_size=2),
    st.integers(1, 20),
)
def test_shares_are_those_of_the_weights(weights, size):
    times = VirtualTimes(weights)
    lines = lines_of("".join(weights), 1_000)
    taken = Counter("".join(serve(times, lines, size) for _ in range(-(-400 // size))))
    total, weight = sum(taken.values()), sum(weights.values())
    for key, own in weights.items():
        assert abs(taken[key] - total * own / weight) <= 2 * max(1.0, own) / min(1.0, *weights.values()) + 1


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(1, 9)), max_size=30), st.integers(1, 8))
def test_no_turn_waits_for_more_than_a_round(arrivals, size):
    """A turn that has jobs is served at the latest after one job of each other turn and the rest of a claim."""
    times, lines, waited = VirtualTimes(), {key: [] for key in KEYS}, Counter()
    for number, (key, jobs) in enumerate([*arrivals, *[("a", 1)] * 30]):
        lines[key] += [Candidate(5, number, f"{number:03} {job}", "q", "t", None) for job in range(jobs)]
        taken = Counter(serve(times, {one: line for one, line in lines.items() if line}, size))
        for other, line in lines.items():
            waited[other] = 0 if taken[other] or not line else waited[other] + sum(taken.values())
            assert waited[other] <= 2 * len(KEYS) + size


def test_a_newcomer_begins_level():
    times, lines = VirtualTimes(), lines_of("ab")
    serve(times, lines, 40)
    taken = Counter(serve(times, lines | lines_of("c"), 30))
    assert set(taken) == set("abc")
    assert max(taken.values()) - min(taken.values()) <= 2


def test_a_turn_that_could_not_run_begins_level():
    times, lines = VirtualTimes(), lines_of("ab")
    assert serve(times, lines, 20, lambda one: one.id < "b") == "a" * 20
    taken = Counter(serve(times, lines, 20))
    assert abs(taken["a"] - taken["b"]) <= 2


def test_workers_that_read_the_same_lines_agree():
    mine, yours, lines = VirtualTimes(), VirtualTimes(), lines_of("abc")
    for worker, other in [(mine, yours), (yours, mine)] * 6:
        keys = [key for key, _job in in_turns(worker, lines, lambda one: True)][:2]
        stored = worker.lines("q", 5, Counter(keys))
        for one in (worker, other):
            one.recall(stored)
    assert [mine.order(key) for key in "abc"] == [yours.order(key) for key in "abc"]
    assert mine.clock == 7.0


def test_foreign_lines_starve_nobody():
    times, lines = VirtualTimes(), lines_of("ab")
    foreign = [(math.nan, 0.0), (0.0, math.inf), (1e300, 1e300), (-math.inf, 0.0), (1e9, 3.0), (5.0, -1e9)]
    times.recall(ServedTurn("q", 5, "a", -7, finish, clock) for finish, clock in foreign)
    times.recall(ServedTurn("q", 5, f"{number}", 1, 1.0, 0.0) for number in range(20_000))
    assert set(serve(times, lines, 4)) == {"a", "b"}
    assert sum(vars(times)["_finishes"].get(key) is not None for key in map(str, range(20_000))) <= 10_000


def test_missing():
    times, lines = VirtualTimes(), lines_of("a", 2)
    heads = {"a": (0, "a000"), "b": (1, "b"), "c": (2, "c")}
    assert missing(times, lines, heads, lambda one: True, 3) == {"b": 1, "c": 1}
    assert missing(times, lines, heads, lambda one: True, 8) == {"a": 1, "b": 3, "c": 2}
    assert missing(times, lines, heads, lambda one: False, 2) == {"a": 1, "b": 1}
    assert missing(times, lines, {}, lambda one: True, 9) == {}


def test_before():
    times, firsts = VirtualTimes(), {"a": (3, "x"), "b": (1, "y"), "c": (2, "z")}
    assert [before(times, key, firsts) for key in "abc"] == [2, 0, 1]
    times.recall(times.lines("q", 5, {"b": 1}))
    assert [before(times, key, firsts) for key in "abcd"] == [1, 2, 0, 2]
