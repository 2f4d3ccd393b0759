"""Tests of the formal models: every order of steps keeps the promises, and without a guard one is broken.

The models follow the code by hand. Who changes it changes the model too:

- ``lease.pml``: what the statements of claim, renewal, sweep and settlement ask of a row
- ``slots.pml``: what ``Schedules.fire`` asks of a row
- ``limit.pml``: the order of lock, count and claim in ``LimitedClaims``
- ``lane.pml``: ``Drafts``, ``LaneClaims.choose`` and ``Lane.may_start``
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

TWO_HOLDERS = {"two_are_live", "live_without_the_row"}


class Model(NamedTuple):
    """A model. With fewer states than these, hardly anything could happen in it."""

    file: Path
    many_states: int
    #: What each guard keeps from happening.
    guards: dict[str, set[str]]


def model(name, many_states, **guards):
    return Model(Path(__file__).with_name(f"{name}.pml"), many_states, guards)


MODELS = {
    "lease": model(
        "lease",
        100_000,
        NO_FENCE_IN_SETTLE=TWO_HOLDERS | {"stale_settlement_stored"},
        NO_HOLDER_IN_SETTLE={"stale_settlement_stored", "settled_job_changed"},
        NO_FENCE_IN_EXTEND=TWO_HOLDERS,
        NO_EXPIRY_IN_SWEEP=TWO_HOLDERS,
        NO_LOCK_IN_SWEEP=TWO_HOLDERS,
        FENCE_IS_ATTEMPTS=TWO_HOLDERS | {"stale_settlement_stored", "fence_did_not_grow"},
    ),
    "slots": model(
        "slots",
        20_000,
        NO_LAST_SLOT_COMPARED={"run_twice", "went_back"},
        INDEX_INSTEAD_OF_LAST_SLOT={"run_twice", "went_back"},
        NO_PAUSE_COMPARED={"run_while_paused"},
    ),
    "limit": model(
        "limit",
        20_000,
        COUNT_BEFORE_LOCK={"over_limit", "at_work_over_limit"},
        NO_LOCK={"over_limit", "at_work_over_limit"},
        COUNTER={"leaked"},
    ),
    "lane": model(
        "lane",
        5_000,
        NO_LOCK_OF_PRODUCERS={"barrier_too_early", "behind_barrier"},
        NO_LOCK_OF_WORKERS={"barrier_not_alone"},
        NO_LOOK_BEFORE_A_BARRIER={"barrier_too_early"},
        NO_LOOK_AT_THE_BARRIER={"behind_barrier"},
    ),
}
each_model = pytest.mark.parametrize("name", MODELS)


def search(folder, file, *defines):
    """Try every order of steps until a promise breaks; return what Spin says."""
    run = {"cwd": folder, "check": True, "capture_output": True, "text": True, "timeout": 60}
    subprocess.run(["spin", "-a", *defines, file], **run)
    subprocess.run(["cc", "-O0", "-w", "-DSAFETY", "-o", "pan", "pan.c"], **run)
    said = subprocess.run(["./pan", "-m100000"], **run).stdout
    assert "max search depth too small" not in said
    return said


def broken(said):
    return set(re.findall(r"assertion violated +!\((\w+)\)", said))


@each_model
def test_every_order_of_steps_keeps_the_promises(spin, name):
    said = search(spin, MODELS[name].file)
    assert broken(said) == set()
    assert "errors: 0" in said
    assert int(re.search(r"(\d+) states, stored", said)[1]) > MODELS[name].many_states


@pytest.mark.parametrize(("name", "guard"), [(name, guard) for name, one in MODELS.items() for guard in one.guards])
def test_without_a_guard_a_promise_is_broken(spin, name, guard):
    said = search(spin, MODELS[name].file, f"-D{guard}")
    assert "errors: 1" in said
    assert broken(said)
    assert broken(said) <= MODELS[name].guards[guard]


@each_model
def test_each_guard_that_can_be_taken_away_is(name):
    text = MODELS[name].file.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:ifn?def |defined\()(\w+)", text)) == set(MODELS[name].guards)
