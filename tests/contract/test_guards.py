"""Tests of the contract's race tests: each must fail without its guard."""

from __future__ import annotations

from contextlib import nullcontext
from inspect import signature

import pytest
from django.db import OperationalError, connections
from django.db.models import QuerySet

from jobqueue.backends.base import Backend
from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.memory.drafts import MemoryDrafts
from jobqueue.backends.memory.ports.operator import MemoryOperator
from jobqueue.backends.memory.settlements import MemorySettlements
from jobqueue.backends.postgresql import drafts as postgresql_drafts
from jobqueue.backends.postgresql import statements as postgresql_statements
from jobqueue.backends.sql import drafts, settlements
from jobqueue.backends.sql import statements as sql_statements
from jobqueue.backends.sql.settlements import Settlements
from jobqueue.backends.sqlite import SqliteBackend
from jobqueue.backends.sqlite import drafts as sqlite_drafts
from jobqueue.backends.sqlite import statements as sqlite_statements
from jobqueue.backends.sqlite.claims.leases import SqliteLeases
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.models import Job
from jobqueue.records import Settled
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract import BackendContract
from tests.conftest import make_sql_backend

LOCK = "FOR UPDATE SKIP LOCKED"
SQLITE_HELD = sqlite_statements.HELD.removeprefix("j.id = :id")
SQLITE_HELD_BY_PLACE = sqlite_statements.HELD_BY_PLACE.removeprefix("j.id = ?")

#: The same number of places, and no guard.
WITHOUT_A_LOOK = " AND ? IS NOT NULL AND ? IS NOT NULL"


@pytest.fixture
def promise(databases):
    """Run a test of the contract on a backend; on one alias, or on memory."""

    def run(kind, name, **given):
        clock = VirtualClock()
        backend = MemoryBackend(clock=clock) if kind == "memory" else make_sql_backend(kind, clock)
        given |= {"backend": backend, "clock": clock}
        test = getattr(BackendContract(), f"test_{name}")
        test(**{parameter: given[parameter] for parameter in signature(test).parameters})

    return run


@pytest.fixture
def race(promise):
    """Run a race of the contract on a backend."""
    return lambda kind, name: promise(kind, f"race_{name}")


class Without:
    """Takes guards out for the length of a test."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def text(self, module, name, guard, instead=""):
        statement = getattr(module, name)
        assert guard in statement
        self.monkeypatch.setattr(module, name, statement.replace(guard, instead))

    def transaction(self):
        """SQLite's: each statement on its own, with SQLite's own waiting."""
        self.monkeypatch.setattr(SqliteSession, "write_transaction", lambda _self: nullcontext())
        self.monkeypatch.setattr(SqliteSession, "retrying", lambda _self, work: work())

    def early_write(self):
        """SQLite's: the sweep's first statement is a write, and so waits for the lock before anything is read."""
        self.monkeypatch.setattr(SqliteLeases, "end_expired", lambda _self, _limit: ())

    def row_locks(self):
        self.monkeypatch.setattr(QuerySet, "select_for_update", lambda self, **_: self)

    def conditions(self, *names):
        """The ORM's: rows are found without the conditions of these names."""
        original = QuerySet.filter

        def lax(self, *args, **conditions):
            return original(self, *args, **{key: conditions[key] for key in conditions if key not in names})

        self.monkeypatch.setattr(QuerySet, "filter", lax)

    def completions_only(self):
        """Follow-up jobs are stored whatever became of the settlement they came with."""
        store = Settlements.store

        def follow_all(self, offers):
            settled = store(self, [one._replace(children=()) for one in offers])
            return Settled(settled.refused, self._follow([child for one in offers for child in one.children]))

        self.monkeypatch.setattr(Settlements, "store", follow_all)

    def key_order(self):
        for module in (drafts, settlements):
            self.monkeypatch.setattr(module, "sorted", lambda items, key=None: list(items), raising=False)


@pytest.fixture
def without(monkeypatch):
    return Without(monkeypatch)


@pytest.fixture
def without_unique_keys(request, databases):
    """Drop the index that keeps keys apart, and make it again."""
    alias = request.param
    constraint = next(one for one in Job._meta.constraints if one.name == "job_queue_idempotency_key")
    with connections[alias].schema_editor() as editor:
        editor.remove_constraint(Job, constraint)
    yield alias
    with connections[alias].cursor() as cursor:
        cursor.execute("DELETE FROM job_queue")
    with connections[alias].schema_editor() as editor:
        editor.add_constraint(Job, constraint)


SQLITE_MUTANTS = {
    "claim_claim": lambda without: without.transaction(),
    "claim_claim_group_by_group": lambda without: without.transaction(),
    "sweep_settle": lambda without: without.text(sqlite_statements, "COMPLETE", SQLITE_HELD_BY_PLACE, WITHOUT_A_LOOK),
    "settle_sweep": lambda without: (
        without.transaction(),
        without.early_write(),
        without.text(sqlite_statements, "SETTLE", SQLITE_HELD),
    ),
    "extend_sweep": lambda without: (without.transaction(), without.early_write()),
    "sweep_extend": lambda without: without.text(sqlite_statements, "EXTEND", SQLITE_HELD),
    "pause_claim": lambda without: without.text(
        sqlite_statements, "PAUSES", "job_queue_pause", "job_queue_pause WHERE 1 = 0"
    ),
    "cancel_settle": lambda without: (
        without.text(sqlite_statements, "SETTLE", "j.cancel_requested_at IS NULL", "TRUE"),
        without.text(sqlite_statements, "SETTLE", "j.cancel_requested_at IS NOT NULL", "FALSE"),
    ),
    "settle_cancel": lambda without: without.transaction(),
    "retry_retry": lambda without: without.transaction(),
    "claim_amend": lambda without: without.transaction(),
    "edit_edit": lambda without: without.transaction(),
    "tally_tally": lambda without: without.transaction(),
}


@pytest.mark.parametrize("name", SQLITE_MUTANTS)
def test_a_race_fails_on_sqlite_without_its_guard(race, without, name):
    SQLITE_MUTANTS[name](without)
    with pytest.raises(AssertionError):
        race("default", name)


#: The guards of jobs that repeat: in the module of each database, the statement, the guard and what takes its place.
REPEAT_MUTANTS = {
    "debounced_claim": {
        "default": (sqlite_drafts, "_MOVE", "job_queue.status = 'queued' AND ", ""),
        "postgres": (postgresql_drafts, "_MOVE", "job_queue.status = 'queued' AND ", ""),
    },
    "ended_throttled_throttled": {
        "default": (sqlite_drafts, "_LET_THROUGH", "job_queue_throttle.until <= %s", "%s IS NOT NULL"),
        "postgres": (postgresql_drafts, "_LET_THROUGH", "WHERE job_queue_throttle.until <= @now", ""),
    },
}


@pytest.mark.parametrize("name", REPEAT_MUTANTS)
def test_a_race_of_jobs_that_repeat_fails_without_its_guard(race, without, alias, name):
    without.text(*REPEAT_MUTANTS[name][alias])
    with pytest.raises(AssertionError):
        race(alias, name)


def _postgres_mutants():
    held = sql_statements.HELD.removeprefix("j.id = v.id")
    pauses = "AND head.queue <> ALL(ARRAY(SELECT name FROM job_queue_pause WHERE scope = 'queue'))"
    return {
        "claim_claim": [("FIRST", LOCK, "")],
        "many_workers": [("FIRST", LOCK, "")],
        "claim_claim_group_by_group": [("FIRST_OF_GROUPS", LOCK, "")],
        "sweep_settle": [("COMPLETE", postgresql_statements.HELD_BY_KEY, " ")],
        "settle_sweep": [("RAN_OUT", LOCK, ""), ("SETTLE", held, "")],
        "extend_sweep": [("RAN_OUT", LOCK, "")],
        "sweep_extend": [("EXTEND", LOCK, ""), ("EXTEND", f"{held} AND j.id = ANY", " AND j.id = ANY")],
        "pause_claim": [("FIRST", pauses, "")],
        "cancel_settle": [
            ("SETTLE", "j.cancel_requested_at IS NULL", "TRUE"),
            ("SETTLE", "j.cancel_requested_at IS NOT NULL", "FALSE"),
        ],
    }


POSTGRES_RACES = list(_postgres_mutants())


@pytest.mark.postgres
@pytest.mark.parametrize("name", POSTGRES_RACES)
def test_a_race_fails_on_postgres_without_its_guard(race, without, name):
    for statement, guard, instead in _postgres_mutants()[name]:
        without.text(postgresql_statements, statement, guard, instead)
    postgresql_statements.cycle_statement.cache_clear()
    try:
        with pytest.raises(AssertionError):
            race("postgres", name)
    finally:
        postgresql_statements.cycle_statement.cache_clear()


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["settle_cancel", "retry_retry", "claim_amend", "edit_edit", "tally_tally"])
def test_an_operators_race_fails_on_postgres_without_row_locks(race, without, name):
    without.row_locks()
    with pytest.raises(AssertionError):
        race("postgres", name)


@pytest.fixture
def meeting_half_way(databases):
    """Let two bulks of the same keys wait for each other in the middle, so that each holds what the other wants."""
    with connections["postgres"].cursor() as cursor:
        cursor.execute("""
            CREATE FUNCTION meet_half_way() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              PERFORM pg_advisory_xact_lock_shared(150);
              WHILE 2 > (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 150 AND database =
                         (SELECT oid FROM pg_database WHERE datname = current_database())) LOOP
                PERFORM pg_sleep(0.001);
              END LOOP;
              RETURN NEW;
            END $$;
            CREATE TRIGGER meet_half_way BEFORE INSERT ON job_queue FOR EACH ROW
              WHEN (NEW.idempotency_key = '0-key-150') EXECUTE FUNCTION meet_half_way()
        """)
    yield
    with connections["postgres"].cursor() as cursor:
        cursor.execute("DROP FUNCTION meet_half_way() CASCADE")


@pytest.mark.postgres
def test_two_bulks_deadlock_on_postgres_without_an_order_of_keys(race, without, meeting_half_way):
    without.key_order()
    with pytest.raises(OperationalError, match="deadlock"):
        race("postgres", "same_keys_among_many")


@pytest.mark.parametrize(
    "without_unique_keys",
    [pytest.param("default", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
    indirect=True,
)
def test_one_key_makes_two_jobs_without_the_unique_index(race, without_unique_keys):
    with pytest.raises(AssertionError):
        race(without_unique_keys, "same_key_twice")


MEMORY_MUTANTS = {
    "sweep_settle": (MemorySettlements, "held", lambda self, claim: self._tables.jobs.get(claim.id)),
    "same_key_twice": (MemoryDrafts, "_holder", lambda self, draft: None),
    "pause_claim": (MemoryOperator, "pause", lambda self, *args: True),
}


@pytest.mark.parametrize("name", MEMORY_MUTANTS)
def test_a_race_fails_in_memory_without_its_guard(race, monkeypatch, name):
    monkeypatch.setattr(*MEMORY_MUTANTS[name])
    with pytest.raises(AssertionError):
        race("memory", name)


#: What a report of progress is asked for before it is believed, and the claim that only this keeps out.
REPORTS = {
    "the fence": (["fence"], "a_report_of_a_lost_claim", {"loss": "claimed again by its own worker"}),
    "the owner": (["lease_owner"], "a_report_of_a_stranger", {"change": {"owner": "you"}}),
    "who holds it now": (["lease_owner", "status"], "a_report_of_a_lost_claim", {"loss": "completed"}),
}
each_database = pytest.mark.parametrize(
    "database",
    [pytest.param("default", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
    ids=["sqlite", "postgres"],
)


@each_database
@pytest.mark.parametrize("guard", REPORTS)
def test_a_late_report_is_believed_without_its_guard(promise, without, database, guard):
    conditions, name, given = REPORTS[guard]
    without.conditions(*conditions)
    with pytest.raises(AssertionError):
        promise(database, f"{name}_changes_nothing", **given)


#: What keeps follow-up jobs out: a refused completion, and an ending that is none.
FOLLOWERS = {
    "a_refused_completion_drops_its_follow_up_jobs": {},
    "a_second_completion_drops_its_follow_up_jobs": {},
    "an_attempt_that_did_not_succeed_has_no_follow_up_jobs": {"ending": "retried"},
}


@each_database
@pytest.mark.parametrize("name", FOLLOWERS)
def test_follow_up_jobs_of_what_is_not_completed_are_stored_without_the_guard(promise, without, database, name):
    without.completions_only()
    with pytest.raises(AssertionError):
        promise(database, name, **FOLLOWERS[name])


def _memory_follows_all(store):
    def follow_all(self, offers):
        settled = store(self, [one._replace(children=()) for one in offers])
        followed = tuple(self._follow(child) for one in offers for child in one.children)
        return Settled(settled.refused, followed)

    return follow_all


@pytest.mark.parametrize("name", FOLLOWERS)
def test_follow_up_jobs_of_what_is_not_completed_are_stored_in_memory_without_the_guard(promise, monkeypatch, name):
    monkeypatch.setattr(MemorySettlements, "store", _memory_follows_all(MemorySettlements.store))
    with pytest.raises(AssertionError):
        promise("memory", name, **FOLLOWERS[name])


def test_a_late_report_is_believed_in_memory_without_its_guard(promise, monkeypatch):
    monkeypatch.setattr(MemorySettlements, "held", lambda self, claim: self._tables.jobs.get(claim.id))
    with pytest.raises(AssertionError):
        promise("memory", "a_report_of_a_stranger_changes_nothing", change={"owner": "you"})


@pytest.fixture
def deferred(databases, monkeypatch):
    """Have SQLite's transactions begin without the write lock, as Django's do unless they are told."""
    connections.close_all()
    monkeypatch.setitem(connections.settings["default"]["OPTIONS"], "transaction_mode", "DEFERRED")
    yield
    connections.close_all()


ATTEMPT_RACES = ["race_write_attempt", "race_attempt_attempt"]


@pytest.mark.parametrize("name", ATTEMPT_RACES)
def test_an_atomic_attempt_waits_for_the_write_lock_whatever_the_settings(promise, deferred, name):
    promise("default", name)


@pytest.mark.parametrize("name", ATTEMPT_RACES)
def test_an_atomic_attempt_fails_on_sqlite_without_waiting_for_the_write_lock(promise, deferred, monkeypatch, name):
    monkeypatch.setattr(SqliteBackend, "atomic_attempt", Backend.atomic_attempt)
    with pytest.raises(OperationalError):
        promise("default", name)
