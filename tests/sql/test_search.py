"""Tests of searches in a part of the jobs: what is complete all the same, and what a part says of itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.backends.sql.search import plan, texts, walk
from jobqueue.clock import SYSTEM
from jobqueue.models import Attempt, Job
from jobqueue.records import Filter, Range
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
    queued = frozenset({JobStatus.QUEUED})
    stored(21, status="queued")
    stored(12)
    assert queue.jobs.search(Filter(statuses=queued), 100).is_part
    assert queue.jobs.count_matches(Filter(statuses=queued), 100) == (21, False, False)
    assert queue.jobs.count_matches(Filter(statuses=queued), 20) == (20, True, False)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"tenant": "acme"},
        {"types": frozenset({"resize"})},
        {"queues": frozenset({"default", "mail"}), "types": frozenset({"resize"})},
        {"fingerprint": "3f2a"},
        {"fingerprint": ""},
        {"ended_after": SYSTEM.now() - timedelta(days=400)},
        {"priority": Range(5, 5), "attempts": Range(0, 3)},
        {"end_reasons": frozenset({"cancelled"})},
        {"excluded": (Filter(types=frozenset({"other"})),)},
    ],
)
@pytest.mark.parametrize("status", [JobStatus.DEAD_LETTER, JobStatus.FAILED])
def test_any_number_of_jobs_that_wait_for_somebody_is_searched_completely(queue, stored, wanted, status):
    about = {"tenant": "acme", "completed_at": SYSTEM.now(), "end_reason": "cancelled"}
    if wanted.get("fingerprint"):
        about["error_fingerprint"] = "3f2a"
    rows = stored(40, status=status.value, **about)
    stored(30)
    found = queue.jobs.search(Filter(statuses=frozenset({status}), **wanted), 100)
    assert (found[:], found.is_part, found.rest_before) == ([row.pk for row in rows], False, None)
    both = queue.jobs.search(Filter(statuses=frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER}), **wanted), 100)
    assert both[:] == found[:]


def _all(queue, wanted, cap):
    """Search as long as there is anything left to search."""
    found = queue.jobs.search(wanted, cap)
    ids = found[:]
    while (rest := found.rest_before) is not None:
        found = queue.jobs.search(wanted, cap, before_id=rest)
        ids += found[:]
    return ids


@pytest.mark.parametrize("cap", [3, 100])
@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        Filter(types=frozenset({"resize"})),
        Filter(statuses=frozenset({JobStatus.COMPLETED}), tenant="acme"),
        Filter(statuses=DEAD, error="fire"),
        Filter(statuses=DEAD, tenant="acme"),
        Filter(statuses=DEAD | {JobStatus.FAILED}, error="fire"),
        Filter(statuses=frozenset({JobStatus.QUEUED})),
        Filter(statuses=frozenset({JobStatus.QUEUED}), tenant="acme"),
        Filter(parent_id="mother"),
        Filter(parent_id="mother", tenant="acme"),
    ],
)
def test_a_search_that_goes_on_finds_everything_once(queue, stored, monkeypatch, wanted, cap):
    monkeypatch.setattr(plan, "FURTHER", 7)
    monkeypatch.setattr(walk, "WALKED", 6)
    about = {"error": "on fire", "tenant": "acme"}
    for status in ("completed", "dead_letter", "failed", "dead_letter", "queued", "completed"):
        stored(9, status=status, parent_id="mother", **about)
        stored(2, status=status, tenant="other")
    assert _all(queue, wanted, cap) == queue.jobs.find_ids(wanted, 1_000)[::-1]


def test_a_search_for_a_payload_reads_a_part_and_says_how_far_it_goes(queue, stored, monkeypatch):
    monkeypatch.setattr(walk, "WALKED", 6)
    rows = stored(9, status="dead_letter", payload={"at": "fire"})
    stored(30)
    found = queue.jobs.search(Filter(statuses=DEAD, payload=(("at", "fire"),)), 100)
    assert found[:] == [row.pk for row in rows[:6]]
    assert (found.is_part, found.searched, found.rest_before) == (True, 6, rows[5].pk)
    assert found.back_to == rows[5].created_at


@pytest.fixture
def failed(queue, stored, monkeypatch):
    """Jobs that failed with an error of one class, among more of another, with bounds that a walk would meet."""
    monkeypatch.setattr(walk, "WALKED", 6)
    monkeypatch.setattr(texts, "SCATTERED", 10)

    def store(status, count=9):
        rows = []
        for number, name in ((30, "KeyError"), (count, "ReadTimeout"), (30, "KeyError")):
            about = {"error": f"Größe 5%_ of '{name[:3]}-7'", "error_fingerprint": name, "fence": 2}
            rows.append(stored(number, status=status, tenant="acme", completed_at=SYSTEM.now(), **about))
            past = [{"job_id": row.pk, "fence": fence} for row in rows[-1] for fence in (1, 2)]
            told = {"attempt": 1, "ending": "failed", "ended_at": SYSTEM.now()}
            history = [Attempt(error_class=name if one["fence"] == 2 else "OSError", **one, **told) for one in past]
            Attempt.objects.using(queue.alias).bulk_create(history)
        return rows[1]

    return store


@pytest.mark.parametrize("count", [9, 12])
@pytest.mark.parametrize("status", [JobStatus.DEAD_LETTER, JobStatus.FAILED])
@pytest.mark.parametrize(
    "wanted",
    [
        {"error": "'rea-7'"},
        {"error": "5%_ OF 'REA"},
        {"error": "größe 5%_ of 'rea"},
        {"error": "dtime"},
        {"error_class": "timeOUT"},
        {"error_class": "timeout", "error": "größe"},
        {"error": "rea-", "tenant": "acme", "excluded": (Filter(types=frozenset({"other"})),)},
    ],
)
def test_any_number_of_errors_is_searched_completely(queue, failed, status, wanted, count):
    ids = [row.pk for row in failed(status.value, count)]
    if queue.alias == "default":  # whose LIKE ignores the case of ASCII alone
        wanted = {name: text.replace("größe", "Größe") if name == "error" else text for name, text in wanted.items()}
    asked = Filter(statuses=frozenset({status}), **wanted)
    found = queue.jobs.search(asked, 100)
    assert (found[:], found.is_part, found.rest_before) == (ids, False, None)
    assert _all(queue, asked, 4) == ids == queue.jobs.find_ids(asked, 1_000)[::-1]
    both = queue.jobs.search(Filter(statuses=DEAD | {JobStatus.FAILED}, **wanted), 100)
    assert (both[:], both.is_part) == (ids, False)
    for nothing in ({"error": "OSError"}, {"error_class": "größe"}, {"error": "7-aer"}, {"error": "5%x"}):
        found = queue.jobs.search(Filter(statuses=DEAD, **nothing), 100)
        assert (found[:], found.is_part) == ([], False)


def test_what_no_index_has_is_searched_in_part(queue, failed, monkeypatch):
    failed("dead_letter")
    is_part = {text: queue.jobs.search(Filter(statuses=DEAD, error=text), 100).is_part for text in ("-7", "a-7")}
    assert is_part == {"-7": queue.alias == "postgres", "a-7": False}
    monkeypatch.setattr(texts, "ERRORS", 1)
    assert queue.jobs.search(Filter(statuses=DEAD, error_class="timeout"), 100).is_part


def test_beyond_the_cap_a_part_keeps_the_newest_and_an_index_the_first_of_its_order(queue, stored):
    rows = stored(6, status="failed", queue="mail")
    apart, along = Filter(queues=frozenset({"mail"})), Filter()
    ids = [row.pk for row in rows]
    assert queue.jobs.search(apart, 2, oldest_first=True)[:] == ids[1::-1]
    assert queue.jobs.search(along, 2, oldest_first=True)[:] == ids[:3:-1]
    for wanted in (apart, along):
        assert queue.jobs.search(wanted, 2)[:] == ids[:2]


@pytest.mark.parametrize("statuses", [DEAD, DEAD | {JobStatus.FAILED}])
def test_ids_of_any_form_are_searched_in_the_order_of_the_database(queue, stored, monkeypatch, statuses):
    monkeypatch.setattr(plan, "FURTHER", 3)
    monkeypatch.setattr(walk, "WALKED", 4)
    stored(3, status="dead_letter", error="on fire")
    now = SYSTEM.now()
    for place, job_id in enumerate(("a", "B", "c-1", "D_2", "ä", "Z", "0", "b", "row 7", "Row-8", "_", "~")):
        status = "dead_letter" if place % 3 else sorted(statuses)[-1].value
        about = {"type": "resize", "status": status, "payload": {}, "error": "on fire"}
        Job.objects.using(queue.alias).create(id=job_id, created_at=now, updated_at=now, scheduled_at=now, **about)
    wanted = Filter(statuses=statuses, error="fire")
    assert sorted(_all(queue, wanted, 100)) == sorted(queue.jobs.find_ids(wanted, 100))
