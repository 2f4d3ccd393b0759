"""Tests of the formal model of claim, lease, sweep and fence: correct in every order, and wrong without a guard.

It follows the statements by hand: who changes what one of them asks of a row changes lease.pml too.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("lease.pml")
#: Fewer states than this were a model in which hardly anything can happen.
MANY_STATES = 100_000

#: What each guard keeps from happening.
TWO_HOLDERS = {"two_are_live", "live_without_the_row"}
MUTANTS = {
    "NO_FENCE_IN_SETTLE": TWO_HOLDERS | {"stale_settlement_stored"},
    "NO_HOLDER_IN_SETTLE": {"stale_settlement_stored", "settled_job_changed"},
    "NO_FENCE_IN_EXTEND": TWO_HOLDERS,
    "NO_EXPIRY_IN_SWEEP": TWO_HOLDERS,
    "NO_LOCK_IN_SWEEP": TWO_HOLDERS,
    "FENCE_IS_ATTEMPTS": TWO_HOLDERS | {"stale_settlement_stored", "fence_did_not_grow"},
}


def search(folder, *defines, model=MODEL):
    """Try every order of steps until a promise breaks; return what Spin says."""
    run = {"cwd": folder, "check": True, "capture_output": True, "text": True, "timeout": 60}
    subprocess.run(["spin", "-a", *defines, model], **run)
    subprocess.run(["cc", "-O0", "-w", "-DSAFETY", "-o", "pan", "pan.c"], **run)
    said = subprocess.run(["./pan", "-m100000"], **run).stdout
    assert "max search depth too small" not in said
    return said


def broken(said):
    return set(re.findall(r"assertion violated +!\((\w+)\)", said))


def test_every_order_of_steps_keeps_the_promises(spin):
    said = search(spin)
    assert broken(said) == set()
    assert "errors: 0" in said
    assert int(re.search(r"(\d+) states, stored", said)[1]) > MANY_STATES


@pytest.mark.parametrize("guard", MUTANTS)
def test_without_a_guard_a_promise_is_broken(spin, guard):
    said = search(spin, f"-D{guard}")
    assert "errors: 1" in said
    assert broken(said)
    assert broken(said) <= MUTANTS[guard]


def test_each_guard_that_can_be_taken_away_is():
    assert set(re.findall(r"(?:ifn?def |defined\()(\w+)", MODEL.read_text(encoding="utf-8"))) == set(MUTANTS)
