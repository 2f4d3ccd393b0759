"""A Postgres server that accepts no writes or no connections, or keeps old row versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import connection

from benchmarks.databases import Place
from benchmarks.faults.catalogue import POSTGRES, fault
from benchmarks.faults.crew import Crew
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.load import Load
from benchmarks.faults.promises import expect_in_reach, expect_one_run
from benchmarks.faults.report import quantiles
from benchmarks.faults.sessions import session, sleepers, transaction
from benchmarks.workers import until
from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.records import ClaimRequest

READ_ONLY = "default_transaction_read_only"
ROLE = "visitor"
#: What each running supervisor, each producer and the laboratory need, and some to be eaten.
FEW = 20


@fault("T16", "a server that becomes read-only", databases=POSTGRES, own_cluster=True)
def read_only(lab: Laboratory) -> None:
    """Make the server read-only for less than a lease: finished jobs are stored later, and not run again."""
    lab.crew.start(2, concurrency=4, lease=4 * lab.lease)
    lab.load.start(2, rate=20)
    with session(lab.place, options=f"-c {READ_ONLY}=off") as operator:
        while lab.goes_on():
            lab.pause(0.5)
            operator.execute(f"ALTER SYSTEM SET {READ_ONLY} = on")
            try:
                lab.cluster.reload()
                lab.injected("read-only")
                lab.pause(0.3, lab.lease / 2)
            finally:
                operator.execute(f"ALTER SYSTEM RESET {READ_ONLY}")
                lab.cluster.reload()
            lab.healed()
            until(lambda: lab.told(What.HEALED)[-1].at < lab.told(What.START)[-1].at, "work goes on")
    lab.expect(_refusals(lab, "read-only"), "producers are told that the server is read-only, none was")
    expect_one_run(lab)


def _refusals(lab: Laboratory, words: str) -> int:
    return sum(words in one.facts.get("error", "") for one in lab.told(What.REFUSED, What.UNKNOWN))


@fault("T17a", "a role that may open no more connections", databases=POSTGRES, own_cluster=True)
def role_limit(lab: Laboratory) -> None:
    """Lower the role's CONNECTION LIMIT below what is open: workers keep connections, running jobs their leases."""
    with session(lab.place) as operator:

        def limit(most: int) -> None:
            operator.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT {most}")

        _starve(lab, operator, take=lambda: limit(1), give_back=lambda: limit(-1))


@fault("T17b", "max_connections eaten by sleepers", databases=POSTGRES, own_cluster=True)
def no_connections_left(lab: Laboratory) -> None:
    """Use up all connections with idle sessions: workers keep theirs, and running jobs keep their leases."""
    connection.close()
    lab.cluster.stop("fast")
    lab.cluster.start(max_connections=str(FEW))
    eaten: list[Any] = []

    def give_back() -> None:
        while eaten:
            eaten.pop().close()

    with session(lab.place) as operator:
        _starve(lab, operator, take=lambda: eaten.extend(sleepers(lab.place, FEW, user=ROLE)), give_back=give_back)


def _starve(lab: Laboratory, operator: Any, *, take: Callable[[], None], give_back: Callable[[], None]) -> None:
    """Take all connections, including those of producers, while long jobs run, and release them after a lease."""
    _start_as_visitors(lab, operator)
    while lab.goes_on():
        running = lab.enqueue("long", 4)
        until(lambda jobs=running: lab.started(*jobs), "long jobs run")  # type: ignore[misc]
        before = _starved(lab)

        def is_refused(known: int = before) -> bool:
            operator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'")
            take()
            return _starved(lab) > known

        try:
            until(is_refused, "a producer is refused")
            lab.injected("no connection is to be had")
            lab.pause(2.4 * lab.lease)
        finally:
            give_back()
        lab.healed()
        lab.pause(0.3)
    lab.findings["refused_for_want_of_a_connection"] = _starved(lab)
    expect_in_reach(lab)
    expect_one_run(lab)


def _starved(lab: Laboratory) -> int:
    return _refusals(lab, "too many") + _refusals(lab, "remaining connection slots")


def _start_as_visitors(lab: Laboratory, operator: Any) -> None:
    """Start workers and producers with a role that may do everything but isn't a superuser."""
    operator.execute(f"CREATE ROLE {ROLE} LOGIN")
    operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {ROLE}")
    operator.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {ROLE}")
    lab.crew = Crew(_as_visitor(lab.place, "crew"), lab.folder, lab.ledger)
    lab.load = Load(_as_visitor(lab.place, "load"), lab.crew, lab.rng)
    lab.crew.start(2, concurrency=4, lease=2 * lab.lease)
    lab.load.start(2, rate=20)


def _as_visitor(place: Place, name: str) -> Place:
    return replace(place, database=place.database | {"USER": ROLE, "OPTIONS": {"application_name": name}})


@fault("T18", "a transaction that keeps vacuum from working", databases=POSTGRES)
def pinned_horizon(lab: Laboratory) -> None:
    """Hold a REPEATABLE READ snapshot under load: dead rows accumulate, and a claim's p99 stays below ten times."""
    lab.crew.start(2, concurrency=8, lease=lab.lease)
    lab.load.start(2, rate=60, mix={"short": 1})
    before = [_claim_takes(lab) for _ in range(20 if lab.quick else 200)]
    pin = "SELECT pg_current_snapshot()"
    with transaction(lab.place, pin, options=r"-c default_transaction_isolation=repeatable\ read"):
        held = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xmin IS NOT NULL"
        lab.expect(_value(held) == 1, "a snapshot is held")
        lab.injected("a snapshot is held")
        during: list[float] = []
        while lab.goes_on() or len(during) < len(before):
            during.append(_claim_takes(lab))
        dead = _value("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'job_queue'")
    late = during[-len(before) :]
    worst, allowed = sorted(late)[int(0.99 * len(late)) - 1], 10 * max(0.1, *before)
    lab.findings |= {
        "dead_rows": dead,
        "claim_before_p50_p99": quantiles(before),
        "claim_at_the_end_p50_p99": quantiles(late),
    }
    lab.expect(worst < allowed, f"a claim takes less than {allowed:.2f} s, it took {worst:.2f} s")


def _claim_takes(lab: Laboratory) -> float:
    """Time a claim that looks at due jobs but takes none."""
    lab.pause(0.02)
    asked = ClaimRequest(
        limit=8, types=frozenset({"nobody's"}), queues=None, lease=timedelta(seconds=lab.lease), leases={}
    )
    began = SYSTEM.monotonic()
    backends.current().cycle("a probe", (), asked)
    return SYSTEM.monotonic() - began


def _value(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]
