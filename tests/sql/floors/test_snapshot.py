"""Tests of a queue under an old snapshot: what a claim, a sweep and a sample read stays the same."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import connections

from jobqueue.backends.postgresql.floors.floors import SHARE
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.testing.contract.harness import LEASE, draft, put, put_all, request, take
from tests.conftest import make_sql_backend
from tests.sql.floors.harness import sections, snapshot
from tests.sql.floors.test_late import INSERT
from tests.waking.test_silence import address
from tests.worker.harness import until

pytestmark = pytest.mark.postgres

CHURNED = 40_000
AT_ONCE = 10_000
#: What a claim on an empty table reads, generously.
FEW_PAGES = 400


def churn(count):
    """Enqueue, claim and complete jobs, in large batches of plain SQL."""
    with connections["postgres"].cursor() as cursor:
        for _ in range(count // AT_ONCE):
            cursor.execute(
                "INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at) SELECT "
                "gen_random_uuid()::text, 'resize', '{}', clock_timestamp(), now(), now() FROM generate_series(1, %s)",
                [AT_ONCE],
            )
            cursor.execute(
                "UPDATE job_queue SET status = 'in_progress', lease_owner = 'x', lease_until = now() - '1 s'::interval "
                "WHERE status = 'queued'"
            )
            cursor.execute(
                "UPDATE job_queue SET status = 'completed', lease_owner = NULL, lease_until = NULL, "
                "completed_at = now() WHERE status = 'in_progress'"
            )


def pages_read():
    """Return how many pages of the job table and its indexes this session's transactions have read."""
    with connections["postgres"].cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables "
            "WHERE relname = 'job_queue'"
        )
        return cursor.fetchone()[0]


def pages_of(verb):
    """Return how many pages a verb reads."""
    before = pages_read()
    verb()
    return pages_read() - before


@pytest.fixture
def backend(databases):
    made = make_sql_backend("postgres", None)
    yield made
    connections["postgres"].close()


def is_up(backend):
    take(backend)
    return bool(sections(backend._looks.floors))


def test_a_claim_reads_few_pages_once_its_floor_is_up(backend):
    with snapshot():
        churn(CHURNED)
        assert pages_of(lambda: make_sql_backend("postgres", None).cycle("me", (), request())) > 1_000
        until(lambda: is_up(backend))
        budget = backend._looks.floors
        budget._look_at = float("inf")  # the claim alone, without the looks beside it
        backend.leases.floors._look_at = float("inf")
        assert pages_of(lambda: take(backend)) < FEW_PAGES


def test_a_job_of_a_late_commit_is_found_within_a_poll_interval(backend):
    with snapshot(), psycopg.connect(address()) as late:
        moment = backend.now()
        job_id = new_id()
        late.execute(INSERT, [job_id, "default", 5, moment, moment, moment])
        churn(CHURNED)
        until(lambda: is_up(backend))
        put(backend)
        assert take(backend)
        late.commit()
        began = SYSTEM.monotonic()
        until(lambda: _is_found(backend, job_id, began))


def _is_found(backend, job_id, began):
    """Claim; a claim that begins a poll interval later has to find the job.

    Looks have a share of the time: on a machine where one takes long, the next one is due later.
    """
    asked = SYSTEM.monotonic()
    found = job_id in {claim.id for claim in take(backend)}
    assert found or asked < began + max(1.0, backend._looks.floors._spent / SHARE)
    return found


def test_a_worker_that_drains_asks_again_until_everything_behind_its_floor_was_looked_through(backend):
    with snapshot(), psycopg.connect(address()) as late:
        moment = backend.now()
        late.execute(INSERT, [new_id(), "default", 5, moment, moment, moment])
        churn(CHURNED)
        until(lambda: is_up(backend))
        late.commit()
        found = []
        until(lambda: not _again(backend, found))
        assert len(found) == 1


def _again(backend, found):
    cycle = backend.cycle("me", (), request())
    found += cycle.claims
    return cycle.claims or cycle.is_partial


def test_a_sweep_with_a_floor_ends_every_lease_that_runs_out(backend):
    with snapshot():
        churn(CHURNED)
        claims = claimed_jobs(backend)
        until(lambda: leases_are_up(backend))
        assert pages_of(lambda: backend.sweep(settle_overdue)) < FEW_PAGES
        with connections["postgres"].cursor() as cursor:
            moments = ["-1 hour", "-1 day", "-1 second"]
            for claim, moment in zip(claims, moments, strict=True):
                cursor.execute(
                    "UPDATE job_queue SET lease_until = now() + %s::interval WHERE id = %s", [moment, claim.id]
                )
        ended = set()
        until(lambda: _swept(backend, ended) == {claim.id for claim in claims})


def test_the_floor_of_leases_rises_without_a_sweep(backend):
    with snapshot():
        churn(CHURNED)
        claimed_jobs(backend)
        until(lambda: backend.leases.look() or sections(backend.leases.floors))
        backend.leases.floors._look_at = float("inf")  # the sweep alone, without the looks beside it
        assert pages_of(lambda: backend.sweep(settle_overdue)) < FEW_PAGES


def test_statistics_do_not_lead_the_search_for_expired_jobs_through_the_dead_rows_of_others(backend):
    with snapshot(), connections["postgres"].cursor() as cursor:
        churn(CHURNED)
        cursor.execute("ANALYZE job_queue")
        backend.leases.floors._look_at = float("inf")
        assert pages_of(backend.leases.look) < FEW_PAGES
        assert pages_of(lambda: backend.leases.expire(100)) < FEW_PAGES


def claimed_jobs(backend):
    put_all(backend, *(draft() for _ in range(3)))
    return take(backend, 3)


def leases_are_up(backend):
    backend.leases.look()
    backend.sweep(settle_overdue)
    return bool(sections(backend.leases.floors))


def _swept(backend, ended):
    backend.leases.look()
    ended |= {one.id for one in backend.sweep(settle_overdue).ended}
    return ended


def test_a_sample_with_floors_counts_what_waits_and_runs(backend):
    with snapshot():
        churn(CHURNED)
        until(lambda: is_up(backend))
        put_all(backend, draft("greet"), draft(priority=1), draft(delay=timedelta(hours=1), queue="mail"))
        until(lambda: leases_are_up(backend))
        take(backend, 1)
        expected = make_sql_backend("postgres", None).metrics.depths()
        assert backend.metrics.depths() == expected
        assert [(one.type, one.queue, one.queued, one.due, one.in_progress) for one in expected] == [
            ("greet", "default", 1, 1, 0),
            ("resize", "default", 0, 0, 1),
            ("resize", "mail", 1, 0, 0),
        ]


def test_floors_fall_when_the_dead_rows_are_gone(backend):
    with snapshot():
        churn(CHURNED)
        until(lambda: is_up(backend))
    with connections["postgres"].cursor() as cursor:
        cursor.execute("VACUUM job_queue")
    until(lambda: not is_up(backend))


def test_two_workers_run_every_job_once(backend):
    with snapshot():
        churn(CHURNED)
        workers = [backend, make_sql_backend("postgres", None)]
        for worker in workers:
            until(lambda worker=worker: is_up(worker))
        wanted, done = set(), []
        for place in range(300):
            wanted |= set(put_all(backend, *(draft(priority=1 + number % 3) for number in range(5))))
            claims = take(workers[place % 2], 4, owner=str(place % 2))
            done += claims
            assert not workers[place % 2].cycle(str(place % 2), [completed(claim) for claim in claims]).refused
        while rest := take(backend, 100, lease=LEASE):
            done += rest
        assert len(done) == len(wanted)
        assert {claim.id for claim in done} == wanted
