"""Tests of workers, a sweeper, a producer and an operator, interleaved at every statement.

Each seed is one order, with stalls, crashes, lost connections and lost answers, under a virtual clock. A failure prints
its seed and its last steps. To see it again, and to try many more:

    JOBQUEUE_SIMULATION_SEED=123 python -m pytest tests/simulation -k "no_order and sqlite"
    JOBQUEUE_SIMULATION_COUNT=100000 python -m pytest tests/simulation -k "no_order and postgres"
"""

from __future__ import annotations

import os

import pytest
from django.db import ProgrammingError

from jobqueue.backends.postgresql import statements as postgresql_statements
from jobqueue.backends.postgresql.claims import limit_statements as postgresql_limit_statements
from jobqueue.backends.sql import statements as sql_statements
from jobqueue.backends.sqlite import statements as sqlite_statements
from jobqueue.backends.sqlite.claims import limited_claims as sqlite_limited_claims
from jobqueue.states import JobStatus
from tests.contract.test_guards import LOCK, SQLITE_HELD, SQLITE_HELD_BY_PLACE, WITHOUT_A_LOOK, Without
from tests.simulation.borders import borders
from tests.simulation.changes import noted
from tests.simulation.simulating import FAULTS, Broken, Simulation

COUNTS = {"memory": 100, "default": 150, "postgres": 12}


def seeds(kind):
    given = os.environ.get("JOBQUEUE_SIMULATION_SEED")
    return [int(given)] if given else range(int(os.environ.get("JOBQUEUE_SIMULATION_COUNT", COUNTS[kind])))


@pytest.fixture(
    params=[
        "memory",
        pytest.param("default", marks=pytest.mark.sqlite),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ],
    ids=["memory", "sqlite", "postgres"],
)
def simulation(request, monkeypatch):
    """Simulations on each backend in turn."""
    if request.param == "memory":
        yield Simulation("memory")
        return
    request.getfixturevalue("databases")
    with borders(monkeypatch, request.param), noted(request.param):
        made = Simulation(request.param)
        yield made
        made.watch.close()


#: What the seeds must have met with, or they would prove little.
DANGERS = {
    "a settlement that was refused",
    "a lease that ran out",
    "a purge",
    "a job that ran again",
    "a limit that was used up",
    *(f"an attempt that ended as {status}" for status in JobStatus if status is not JobStatus.IN_PROGRESS),
}


@pytest.mark.timeout(
    0 if "JOBQUEUE_SIMULATION_COUNT" in os.environ else 600
)  # most of it is waiting for one another, on a busy machine
def test_no_order_of_steps_breaks_a_promise(simulation):
    lived = seeds(simulation.kind)
    for seed in lived:
        simulation.run(seed)
    dangers = DANGERS | {fate.value for fate in FAULTS[simulation.kind]}
    if simulation.alias:
        dangers |= {"a lock", "an answer that was lost"}
    assert len(lived) < COUNTS[simulation.kind] or simulation.met >= dangers


@pytest.mark.parametrize(
    "simulation", ["memory", pytest.param("default", marks=pytest.mark.sqlite)], ids=["memory", "sqlite"], indirect=True
)  # on Postgres a deadlock ends when the server's own clock says so, and whoever is freed joins the others then
def test_a_seed_is_the_same_steps_again(simulation):
    for seed in range(3):
        assert simulation.run(seed) == simulation.run(seed)


#: Within so many seeds a simulation finds out that a guard is missing.
FOUND_WITHIN = 150
POSTGRES_HELD = sql_statements.HELD.removeprefix("j.id = v.id")

MUTANTS = {
    "default": {
        "the fence of a completion": [("COMPLETE", SQLITE_HELD_BY_PLACE, WITHOUT_A_LOOK)],
        "the fence of a settlement": [("SETTLE", SQLITE_HELD, "")],
        "the fence of an extension": [("EXTEND", SQLITE_HELD, "")],
        "the end of a lease": [("RAN_OUT", "lease_until < ?", "? IS NOT NULL")],
        "the count of the fence": [("TAKE", "fence = fence + 1", "fence = fence")],
        "the running jobs of a limit": [("limits RUNNING", "lease_until > ''", "FALSE")],
        "what an operator wants stopped": [
            ("SETTLE", "j.cancel_requested_at IS NULL", "TRUE"),
            ("SETTLE", "j.cancel_requested_at IS NOT NULL", "FALSE"),
        ],
    },
    "postgres": {
        "the fence of a completion": [("COMPLETE", postgresql_statements.HELD_BY_KEY, " ")],
        "the fence of a settlement": [("SETTLE", POSTGRES_HELD, "")],
        "the fence of an extension": [("EXTEND", POSTGRES_HELD, "")],
        "the end of a lease": [("RAN_OUT", "AND lease_until < @now", "")],
        "the locks of a claim": [("FIRST", LOCK, "")],
        "the locks of a sweep": [("RAN_OUT", LOCK, "")],
        "the locks of limits": [("limits LOCK", "pg_try_advisory_xact_lock", "0 < abs")],
    },
}
STATEMENTS = {"default": sqlite_statements, "postgres": postgresql_statements}
LIMIT_STATEMENTS = {"default": sqlite_limited_claims, "postgres": postgresql_limit_statements}
_MARKS = {"default": pytest.mark.sqlite, "postgres": pytest.mark.postgres}
_IDS = {"default": "sqlite", "postgres": "postgres"}


@pytest.mark.parametrize(
    ("simulation", "guard"),
    [
        pytest.param(kind, guard, marks=_MARKS[kind], id=f"{_IDS[kind]} {guard}")
        for kind, guards in MUTANTS.items()
        for guard in guards
    ],
    indirect=["simulation"],
)
def test_without_a_guard_some_order_breaks_a_promise(simulation, guard, monkeypatch):
    for name, text, instead in MUTANTS[simulation.kind][guard]:
        modules = LIMIT_STATEMENTS if name.startswith("limits ") else STATEMENTS
        Without(monkeypatch).text(modules[simulation.kind], name.removeprefix("limits "), text, instead)
    postgresql_statements.cycle_statement.cache_clear()
    try:
        with pytest.raises(Broken) as broken:
            for seed in range(FOUND_WITHIN):
                simulation.run(seed)
    finally:
        postgresql_statements.cycle_statement.cache_clear()
    assert not isinstance(broken.value.__cause__, ProgrammingError)  # the guard is missing, and nothing else
