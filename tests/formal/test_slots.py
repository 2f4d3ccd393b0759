"""Tests of the formal model of schedules: each slot once in every order of steps, and wrong without a guard.

It follows ``Schedules.fire`` by hand: who changes what that asks of a row changes slots.pml too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.formal.test_lease import broken, search

MODEL = Path(__file__).with_name("slots.pml")
#: Fewer states than this were a model in which hardly anything can happen.
MANY_STATES = 20_000

#: What each guard keeps from happening.
MUTANTS = {
    "NO_LAST_SLOT_COMPARED": {"run_twice", "went_back"},
    "INDEX_INSTEAD_OF_LAST_SLOT": {"run_twice", "went_back"},
    "NO_PAUSE_COMPARED": {"run_while_paused"},
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
