"""Tests of searches in a part of the jobs: what is complete all the same, and what a part says of itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.backends.sql.search import plan
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft

DEAD = frozenset({JobStatus.DEAD_LETTER})
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """Bounds that ten jobs meet."""
    monkeypatch.setattr(plan, "NEWEST", 10)
    monkeypatch.setattr(plan, "SCATTERED", 8)
    monkeypatch.setattr(plan, "EXACT", 20)


@pytest.fixture
def stored(queue):
    """A function that stores jobs a minute apart, the last one just now, and returns them, the newest first."""

    def store(count, **values):
        now = SYSTEM.now()
        moments = [now - MINUTE * place for place in range(count)][::-1]
        columns = {"type": "resize", "status": "completed", "payload": {}, **values}
        rows = [Job(id=draft().id, created_at=one, updated_at=one, scheduled_at=one, **columns) for one in moments]
        Job.objects.using(queue.alias).bulk_create(rows)
        return rows[::-1]

    return store


def test_a_part_says_how_many_jobs_were_searched_and_how_far_back(queue, stored):
    old, newer = stored(5, type="old"), stored(7)
    found = queue.jobs.search(Filter(types=frozenset({"old"})), 100)
    assert found[:] == [row.pk for row in old[:3]]
    assert (found.found, found.more, found.is_part) == (3, False, True)
    assert (found.searched, found.back_to) == (10, old[2].created_at)
    assert queue.jobs.count_matches(Filter(types=frozenset({"old"})), 100) == (3, False, True)
    assert len(newer) == 7


def test_fewer_jobs_than_a_search_reads_are_searched_completely(queue, stored):
    rows = stored(9)
    found = queue.jobs.search(Filter(tenant="nobody"), 100)
    assert (found.found, found.searched, found.is_part, found.back_to) == (0, len(rows), False, None)


def test_a_part_that_goes_back_further_than_the_filter_is_complete(queue, stored):
    rows = stored(12)
    found = queue.jobs.search(Filter(created_after=rows[4].created_at), 100)
    assert found[:] == [row.pk for row in rows[:5]]
    assert (found.is_part, found.back_to) == (False, None)


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(statuses=DEAD),
        Filter(statuses=DEAD, error="fire"),
        Filter(statuses=DEAD, fingerprint="3f2a"),
        Filter(parent_id="mother"),
        Filter(parent_id="mother", tenant="acme"),
        Filter(idempotency_key="order-7"),
    ],
)
def test_an_index_leads_to_jobs_of_any_age(queue, stored, wanted):
    about = {"error": "on fire", "error_fingerprint": "3f2a", "parent_id": "mother", "tenant": "acme"}
    (old,) = stored(1, status="dead_letter", idempotency_key="order-7", **about)
    stored(30)
    found = queue.jobs.search(wanted, 100)
    assert (found[:], found.is_part, found.back_to) == ([old.pk], False, None)


def test_an_index_counts_more_than_a_search_finds(queue, stored):
    stored(21, status="dead_letter")
    stored(12)
    assert queue.jobs.search(Filter(statuses=DEAD), 100).is_part
    assert queue.jobs.count_matches(Filter(statuses=DEAD), 100) == (21, False, False)
    assert queue.jobs.count_matches(Filter(statuses=DEAD), 20) == (20, True, False)


def test_beyond_the_cap_a_part_keeps_the_newest_and_an_index_the_first_of_its_order(queue, stored):
    rows = stored(6, status="failed", queue="mail")
    apart = Filter(queues=frozenset({"mail"}))
    along = Filter(statuses=frozenset({JobStatus.FAILED}), types=frozenset({"resize"}), queues=apart.queues)
    ids = [row.pk for row in rows]
    assert queue.jobs.search(apart, 2, oldest_first=True)[:] == ids[1::-1]
    assert queue.jobs.search(along, 2, oldest_first=True)[:] == ids[:3:-1]
    for wanted in (apart, along):
        assert queue.jobs.search(wanted, 2)[:] == ids[:2]
