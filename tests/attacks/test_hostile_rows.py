"""Tests of every hostile value in every column, table and status: workers survive, and other jobs run."""

from __future__ import annotations

import pytest

from tests.attacks import forging
from tests.attacks.drains import Forgery, culprits, forge, trouble_with
from tests.attacks.hostile import LARGE, STATES, TABLES, row_of

JOBS = "job_queue"
#: The other tables have no states.
GROUPS = [(JOBS, state) for state in STATES] + [(table, "") for table in TABLES if table != JOBS]


def rows_with_one_hostile_value(table, state):
    """Large values are tried by the long run alone: they take their time."""
    return [
        forging.single(table, column, name, state)
        for its_table, column, name, its_state in forging.every_single()
        if (its_table, its_state) == (table, state) and name not in LARGE
    ]


def met_by_workers(foreign, rows):
    """Have workers drain the rows, all at once; those that another is in the way of come in the next round."""
    while rows:
        foreign.clear()
        stored, later = forge(foreign, rows)
        if stored and trouble_with(foreign, stored):
            return culprits(foreign, rows, trouble_with)
        if len(later) == len(rows):
            return []
        rows = later
    return []


@pytest.mark.parametrize(("table", "state"), GROUPS, ids=[f"{table} {state}".strip() for table, state in GROUPS])
def test_no_value_ends_or_stops_a_worker(foreign, table, state):
    rows = rows_with_one_hostile_value(table, state)
    assert len(rows) > 50
    assert [str(one) for one in met_by_workers(foreign, rows)] == []


def test_the_trial_finds_the_row_that_other_jobs_wait_for(foreign):
    """A pause that a foreign program is free to set: who could not find this one, would find nothing above."""
    pause = Forgery("job_queue_pause", {**row_of("job_queue_pause"), "name": "default"}, "name = default")
    rows = [*rows_with_one_hostile_value(JOBS, "completed")[:7], pause]
    (found,) = culprits(foreign, rows, trouble_with)
    assert found.rows == (pause,)
    assert "ordinary jobs are left" in found.what
