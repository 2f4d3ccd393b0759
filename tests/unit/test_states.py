"""Tests of the table of moves against the specification, row by row and by random walks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.states import ACTIVE, MOVES, JobStatus, Move, sources, target

BACK = {Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.QUARANTINE}
BY_DECISION = {Move.CANCEL, Move.EXPIRE}

M4 = {
    ("queued", "in_progress"): {Move.CLAIM},
    ("in_progress", "completed"): {Move.COMPLETE},
    ("in_progress", "queued"): BACK,
    ("in_progress", "dead_letter"): {Move.BURY},
    ("in_progress", "failed"): BY_DECISION,
    ("queued", "failed"): BY_DECISION,
    ("failed", "queued"): {Move.REVIVE},
    ("dead_letter", "queued"): {Move.REVIVE},
}


def test_the_statuses_are_the_five_canonical_ones():
    assert [str(status) for status in JobStatus] == ["queued", "in_progress", "completed", "failed", "dead_letter"]


def test_the_table_is_the_specifications():
    table = {}
    for move, rule in MOVES.items():
        for source in rule.sources:
            table.setdefault((source.value, rule.target.value), set()).add(move)
    assert table == M4


def test_every_move_has_its_row():
    assert set(MOVES) == set(Move)


def test_only_what_was_not_the_jobs_fault_gives_the_attempt_back():
    assert {move for move, rule in MOVES.items() if rule.refunds} == {Move.SNOOZE, Move.RELEASE, Move.QUARANTINE}


def test_a_job_is_active_while_it_waits_or_runs():
    assert {"queued", "in_progress"} == ACTIVE


@pytest.mark.parametrize("move", Move)
def test_sources_and_target_answer_from_the_table(move):
    assert (sources(move), target(move)) == (MOVES[move].sources, MOVES[move].target)


def test_every_status_is_reached_from_queued():
    reached, before = {JobStatus.QUEUED}, set()
    while reached != before:
        before = set(reached)
        reached |= {target(move) for move in Move if sources(move) & reached}
    assert reached == set(JobStatus)


@given(wishes=st.lists(st.sampled_from(Move), max_size=60))
def test_a_walk_takes_only_the_steps_of_the_specification(wishes):
    status, attempts, claims = JobStatus.QUEUED, 0, 0
    for move in wishes:
        if status not in sources(move):
            continue
        step = (status.value, target(move).value)
        assert move in M4[step]
        attempts += (move is Move.CLAIM) - MOVES[move].refunds
        claims += move is Move.CLAIM
        if move is Move.REVIVE:
            attempts = 0
        status = target(move)
        assert 0 <= attempts <= claims
        assert status is not JobStatus.IN_PROGRESS or attempts >= 1


@given(wishes=st.lists(st.sampled_from(Move), max_size=30))
def test_no_walk_leads_on_from_completed(wishes):
    status = JobStatus.COMPLETED
    for move in wishes:
        status = target(move) if status in sources(move) else status
    assert status is JobStatus.COMPLETED
