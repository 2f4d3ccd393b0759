"""Tests of the formal model of a limit of 1: never two at once in every order of steps, and wrong in each twin.

It follows ``LimitedClaims`` by hand: who changes the order of lock, count and claim changes limit.pml too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.formal.test_lease import broken, search

MODEL = Path(__file__).with_name("limit.pml")
#: Fewer states than this were a model in which hardly anything can happen.
MANY_STATES = 20_000

#: What each twin breaks.
TWINS = {
    "COUNT_BEFORE_LOCK": {"over_limit", "at_work_over_limit"},
    "NO_LOCK": {"over_limit", "at_work_over_limit"},
    "COUNTER": {"leaked"},
}


def test_every_order_of_steps_keeps_the_limit(spin):
    said = search(spin, model=MODEL)
    assert broken(said) == set()
    assert "errors: 0" in said
    assert int(re.search(r"(\d+) states, stored", said)[1]) > MANY_STATES


@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_breaks_a_promise(spin, twin):
    said = search(spin, f"-D{twin}", model=MODEL)
    assert "errors: 1" in said
    assert broken(said)
    assert broken(said) <= TWINS[twin]


def test_each_twin_is_tried():
    assert set(re.findall(r"(?:ifn?def |defined\()(\w+)", MODEL.read_text(encoding="utf-8"))) == set(TWINS)
