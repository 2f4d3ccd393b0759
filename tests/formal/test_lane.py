"""Tests of the formal model of a lane: no barrier is passed in any order of steps, and one is without a guard.

It follows ``Drafts``, ``LaneClaims.choose`` and ``Lane.may_start`` by hand: who changes those changes lane.pml too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.formal.test_lease import broken, search

MODEL = Path(__file__).with_name("lane.pml")
#: Fewer states than this were a model in which hardly anything can happen.
MANY_STATES = 5_000

#: What each guard keeps from happening.
MUTANTS = {
    "NO_LOCK_OF_PRODUCERS": {"barrier_too_early", "behind_barrier"},
    "NO_LOCK_OF_WORKERS": {"barrier_not_alone"},
    "NO_LOOK_BEFORE_A_BARRIER": {"barrier_too_early"},
    "NO_LOOK_AT_THE_BARRIER": {"behind_barrier"},
}


def test_every_order_of_steps_keeps_the_promises(spin):
    said = search(spin, model=MODEL)
    assert broken(said) == set()
    assert "errors: 0" in said
    assert int(re.search(r"(\d+) states, stored", said)[1]) > MANY_STATES


@pytest.mark.parametrize("guard", MUTANTS)
def test_without_a_guard_a_promise_is_broken(spin, guard):
    said = search(spin, f"-D{guard}", model=MODEL)
    assert "errors: 1" in said
    assert broken(said)
    assert broken(said) <= MUTANTS[guard]


def test_each_guard_that_can_be_taken_away_is():
    assert set(re.findall(r"(?:ifn?def |defined\()(\w+)", MODEL.read_text(encoding="utf-8"))) == set(MUTANTS)
