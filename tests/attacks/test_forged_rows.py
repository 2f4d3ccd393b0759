"""Tests of rows forged with SQL: refused by the database, or ended visibly, without delaying other jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.db import DatabaseError, OperationalError

from jobqueue import control
from jobqueue.ids import new_id
from jobqueue.models import Job
from jobqueue.policy.settling import completed
from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, finish, job, put, put_all, request, take, take_one
from tests.app.worker_jobs import note_run
from tests.conftest import ON_SQLITE
from tests.worker.harness import until

FAR = "'9999-12-29T23:59:59Z'"
DEEP = '{"x": ' + "[" * 1_500 + "]" * 1_500 + "}"
DIGITS = '{"x": 1' + "0" * 5_000 + "}"
LARGE = '{"x": "' + "a" * 10_000_000 + '"}'
LEASED = "status = 'in_progress', lease_owner = 'nobody'"

#: What is set on a job of the type ``swallow`` that takes anything, and what becomes of it.
FORGED = {
    "a status nobody knows": ("status = 'done'", "refused"),
    "a payload that is no JSON": ("payload = '{x: 1}'", "refused"),
    "a payload that is half JSON": ("payload = '{\"x\": '", "refused"),
    "more attempts than can be counted": ("attempts = 2147483647", "refused"),
    "a fence beyond all": ("fence = 9223372036854775807", "refused"),
    "the most attempts": ("attempts = 1000000000", "completed"),
    "the last fence but one": ("fence = 999999999", "completed"),
    "the last fence": ("fence = 1000000000", "dead_letter"),
    "the last fence, expired": (
        "fence = 1000000000, status = 'in_progress', lease_owner = 'nobody', lease_until = '2020-01-01T00:00:00Z'",
        "dead_letter",
    ),
    "the most crashes": ("crash_count = 2147483647", "completed"),
    "negative attempts": ("attempts = -5", "completed"),
    "more attempts than it has": ("attempts = 1000", "completed"),
    "attempts below nothing": ("max_retries = -1", "completed"),
    "a fence below nothing": ("fence = -5", "completed"),
    "crashes below nothing": ("crash_count = -7", "completed"),
    "a type that is a path": ("type = '../../etc/passwd'", "queued"),
    "a type that is a place in a module": ("type = 'os.system'", "queued"),
    "a type that is SQL": ("type = 'x''; DROP TABLE job_queue; --'", "queued"),
    "no type": ("type = ''", "queued"),
    "an id that is a path": ("id = '../../../admin/logout/?x=1#y'", "completed"),
    "an id that is SQL": ("id = '''; DROP TABLE job_queue; --'", "completed"),
    "an id of signs": ("id = '\t\u202e<b>%2F_2F&amp;\"'''", "completed"),
    "a queue that is SQL": ("queue = 'x'') OR 1=1 --'", "completed"),
    "a lease that never ends": (f"{LEASED}, lease_until = {FAR}", "in_progress"),
    "a lease that ended long ago": (f"{LEASED}, lease_until = '0001-02-01T00:00:00Z'", "completed"),
    "a moment after all others": (f"scheduled_at = {FAR}", "queued"),
    "a life after all others": (f"created_at = {FAR}, updated_at = {FAR}, expires_at = {FAR}", "completed"),
    "an expiry before all others": ("expires_at = '0001-01-02T00:00:00.1Z'", "failed"),
    "a payload of a list": ("payload = '[1]'", "dead_letter"),
    "a payload of 1,500 levels": (f"payload = '{DEEP}'", "dead_letter"),
    "a number of 5,000 digits": (f"payload = '{DIGITS}'", "dead_letter"),
    "10 MB": (f"payload = '{LARGE}'", "completed"),
    "a version from before the first": ("payload_version = -1", "dead_letter"),
    "a version from the future": ("payload_version = 2147483647", "queued"),
    "surroundings of 1,500 levels": (f"context = '{DEEP}'", "ends"),
    "surroundings with 5,000 digits": (f"context = '{DIGITS}'", "completed"),
    "surroundings that are no surroundings": ('context = \'{"language": "../../x", "traceparent": 7}\'', "completed"),
}
#: What Postgres has no room for.
FORGED_ON_SQLITE = {
    "an infinity": ("payload = '{\"x\": 1e999}'", "completed"),
    "NUL in JSON": ('payload = \'{"x": "\\u0000"}\'', "completed"),
    "half of a surrogate pair": ('payload = \'{"x": "\\ud800"}\'', "dead_letter"),
    "NUL in an id": ("id = 'a' || char(0) || 'b'", "ends"),
    "text for a number": ("crash_count = 'many', payload_version = 'one'", "refused"),
    "half an attempt": ("attempts = 0.5, max_retries = 1.5", "refused"),
    "a priority between two": ("priority = 5.5", "refused"),
    "a BLOB for a type": ("type = x'616263'", "refused"),
    "a BLOB for an id": ("id = x'00'", "refused"),
    "a BLOB of JSON": ("payload = CAST('{}' AS BLOB)", "refused"),
    "attempts beyond all": ("attempts = -9e999", "refused"),
    "neither yes nor no": ("parallel = 2", "refused"),
    "text that is not UTF-8 for a type": ("type = CAST(x'61ff' AS TEXT)", "dead_letter"),
    "text that is not UTF-8 for a queue": ("queue = CAST(x'61ff' AS TEXT)", "dead_letter"),
    "text that is not UTF-8 for a tenant": ("tenant = CAST(x'61ff' AS TEXT)", "dead_letter"),
    "text that is not UTF-8 in a payload": ("payload = CAST(x'7b2278223a2261ff227d' AS TEXT)", "dead_letter"),
    "text that is not UTF-8 for an owner": (
        f"{LEASED}, lease_owner = CAST(x'61ff' AS TEXT), lease_until = '2020-01-01T00:00:00Z'",
        "dead_letter",
    ),
}


def forge(sql, queue, assignments):
    """Store a job, forge it, and return how to find it: the id may be part of the forgery."""
    mark, job_id = new_id(), put(queue, "swallow", payload='{"x": 1}')
    sql("UPDATE job_queue SET workspace = %s WHERE id = %s", mark, job_id)
    try:
        sql(f"UPDATE job_queue SET {assignments} WHERE workspace = '{mark}'")
    except DatabaseError:
        return None
    return mark


@pytest.fixture
def forged(queue, alias, sql):
    """Every forgery at once, by what it is; those that the database refused are not among them."""
    wanted = FORGED | (FORGED_ON_SQLITE if alias == "default" else {})
    marks = {name: forge(sql, queue, assignments) for name, (assignments, _) in wanted.items()}
    for name, (_, fate) in wanted.items():
        assert (marks[name] is None) == (fate == "refused"), name
    yield {name: (mark, wanted[name][1]) for name, mark in marks.items() if mark}
    sql("UPDATE job_queue SET status = 'failed'")


def row_of(alias, mark):
    return Job.objects.using(alias).values("id", "status", "error", "end_reason", "attempts").get(workspace=mark)


def is_live(alias, mark):
    return row_of(alias, mark)["status"] in ("queued", "in_progress")


def left(alias, marks):
    return f"the end of {[name for name, mark in marks.items() if is_live(alias, mark)]}"


def test_a_worker_outlives_every_forgery_and_other_jobs_run(forged, alias, start_worker, jobs, ledger, operator, run):
    worker = start_worker("--poll-interval", "0.2")
    jobs.until("completed", *(note_run.enqueue(number=number) for number in range(3)))
    waiting = {name: mark for name, (mark, fate) in forged.items() if fate not in ("queued", "in_progress")}
    until(lambda: not any(is_live(alias, mark) for mark in waiting.values()), what=lambda: left(alias, waiting))
    jobs.until("completed", note_run.enqueue(number=4))
    found = {name: row_of(alias, mark) for name, (mark, _) in forged.items()}
    fates = {name: fate if fate == "ends" else found[name]["status"] for name, (_, fate) in forged.items()}
    assert fates == {name: fate for name, (_, fate) in forged.items()}
    assert worker.stop() == 0
    assert "Traceback" not in worker.output
    assert "out of reach" not in worker.output
    assert all(row["error"] for row in found.values() if row["status"] == "dead_letter")
    for name, row in found.items():
        assert operator.page(quote(row["id"])).status_code == (302 if "\0" in row["id"] else 200), name
    assert {operator.list(**query).status_code for query in ({}, {"status": "dead_letter"}, {"q": DEEP})} == {200}
    assert run("status").code in (1, 2)  # types nobody knows; many dead letters
    assert run("workers").code == 1  # nobody is up any more


# A fence set back


def test_a_fence_set_back_costs_its_holder_the_claim_and_gives_no_zombie_the_next(queue, sql):
    """The number alone would let the zombie in; the owner's name keeps it out."""
    put(queue)
    zombie = take_one(queue, owner="first")
    sql("UPDATE job_queue SET fence = 0")
    assert not finish(queue, zombie, '"too late"')
    sql("UPDATE job_queue SET status = 'queued', lease_owner = NULL, lease_until = NULL")
    holder = take_one(queue, owner="second")
    assert holder.fence == zombie.fence
    assert not finish(queue, zombie, '"from a zombie"')
    assert queue.extend([zombie], timedelta(seconds=60)).lost == (zombie,)
    assert finish(queue, holder, '"from the holder"')
    assert job(queue, holder.id).result == "from the holder"


# Bytes that are no text


def forge_bytes(sql, job_id, **columns):
    for column, value in columns.items():
        sql(f"UPDATE job_queue SET {column} = CAST(x'{value.hex()}' AS TEXT) WHERE id = '{job_id}'")


@ON_SQLITE
def test_what_cannot_be_read_is_a_dead_letter_that_says_so_and_the_others_are_claimed(queue, sql):
    before, bad, worse, after = put_all(queue, *(draft(unique_key=f"key-{number}") for number in range(4)))
    forge_bytes(sql, bad, tenant=b"a\xff", unique_key=b"\xfe", payload=b'{"x": "\xff"}')
    forge_bytes(sql, worse, id=b"\xff\xfe")
    assert [claim.id for claim in take(queue)] == [before, after]
    told = job(queue, bad)
    assert (told.status, told.end_reason, told.tenant, told.unique_key) == ("dead_letter", "not UTF-8", None, None)
    assert told.payload == {"x": "\N{REPLACEMENT CHARACTER}"}
    assert r"tenant 'a\\xff'" in told.error
    (renamed,) = Job.objects.exclude(pk__in=[before, bad, after])
    assert (renamed.status, r"id '\\xff\\xfe'" in renamed.error) == ("dead_letter", True)
    assert queue.operator.retry([bad, renamed.pk]).refused == ()
    assert len(take(queue)) == 2


@ON_SQLITE
def test_settlements_are_stored_though_the_claim_beside_them_meets_what_cannot_be_read(queue, sql):
    done, bad = put_all(queue, draft(), draft())
    claim = take_one(queue)
    assert claim.id == done
    forge_bytes(sql, bad, queue=b"\xff")
    assert queue.cycle("me", [completed(claim, "7")], request()).refused == ()
    assert (job(queue, done).result, job(queue, bad).status) == (7, "dead_letter")


@ON_SQLITE
def test_nobodys_transaction_is_used_to_mend_the_table(queue, sql):
    forge_bytes(sql, put(queue), queue=b"\xff")
    with pytest.raises(OperationalError, match="decode"), queue.atomic():
        take(queue)
    assert sql("SELECT status FROM job_queue") == [("queued",)]


@ON_SQLITE
def test_a_pause_whose_name_is_no_text_stops_nobody(queue, sql):
    put(queue)
    sql(
        "INSERT INTO job_queue_pause (scope, name, reason, paused_at) "
        "VALUES ('queue', CAST(x'ff' AS TEXT), CAST(x'fe' AS TEXT), '2026-01-01T00:00:00Z')"
    )
    assert [pause.name for pause in queue.operator.pauses()] == ["\N{REPLACEMENT CHARACTER}"]
    assert len(take(queue)) == 1


@ON_SQLITE
def test_a_key_whose_holder_is_no_text_is_taken_all_the_same(queue, sql):
    """One that has ended, so that nothing mends it: its id, and the type that a duplicate must have."""
    put(queue, "resize", idempotency_key="held")
    forge_bytes(sql, job_id := sql("SELECT id FROM job_queue")[0][0], payload=b'{"x": "\xff"}', id=b"\xff\xfe")
    sql("UPDATE job_queue SET status = 'completed'")
    receipt = queue.enqueue([draft(idempotency_key="held")])[0]
    assert (receipt.outcome, receipt.payload_differs) == ("existing", True)
    assert job_id not in receipt.id


@ON_SQLITE
def test_paging_ends_though_ids_are_no_text(queue, sql):
    for number, forged in enumerate((b"a\xff", b"a\xff\xff", b"\xff\xfe")):
        put(queue, unique_key=str(number))
        forge_bytes(sql, sql("SELECT id FROM job_queue WHERE unique_key = %s", str(number))[0][0], id=forged)
    sql("UPDATE job_queue SET status = 'failed', end_reason = 'cancelled'")
    put(queue)
    seen, after = [], None
    while ids := queue.jobs.find_ids(Filter(), 2, after):
        assert len(seen) < 10
        seen, after = seen + ids, ids[-1]
    assert len(seen) >= 2
    assert control.purge_matching(Filter(statuses=frozenset({JobStatus.FAILED}))).done == ()


def test_a_pause_of_a_scope_that_does_not_exist_is_refused(queue, sql):
    with pytest.raises(DatabaseError):
        sql(
            "INSERT INTO job_queue_pause (scope, name, reason, paused_at) "
            "VALUES ('Queue', 'a', '', '2026-01-01T00:00:00Z')"
        )
