"""Tests of retries with a pace, retries with another payload, and changes to queued jobs."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.records import Amendment, Refusal
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    bury,
    draft,
    finish,
    job,
    overlapping,
    put,
    put_all,
    take,
    take_one,
)

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def dead(backend: Backend, count: int = 1) -> list[str]:
    """Make dead letters and return their ids."""
    put_all(backend, *(draft() for _ in range(count)))
    claims = take(backend, count)
    for claim in claims:
        bury(backend, claim)
    return [claim.id for claim in claims]


class AmendContract(Contract):
    """Tests of what an operator may change."""

    # Retry with a pace

    def test_retries_with_a_pace_become_due_one_after_another(self, backend: Backend, clock: VirtualClock) -> None:
        ids = dead(backend, 3)
        clock.advance(100)
        order = ids[::-1]
        assert set(backend.operator.retry(order, after=timedelta(seconds=10), every=MINUTE).done) == set(ids)
        due = [job(backend, job_id).scheduled_at - clock.now() for job_id in order]
        assert due == [timedelta(seconds=seconds) for seconds in (10, 70, 130)]
        clock.advance(10)
        assert [claim.id for claim in take(backend)] == order[:1]

    def test_a_refused_retry_leaves_its_place_empty(self, backend: Backend) -> None:
        first, last = dead(backend, 2)
        handled = backend.operator.retry([first, "nosuch", last], every=MINUTE)
        assert handled.refused == (Refusal("nosuch", "does not exist"),)
        assert [job(backend, job_id).scheduled_at for job_id in (first, last)] == [NOON, NOON + 2 * MINUTE]

    # Retry with another payload

    def test_an_edited_retry_runs_with_the_new_payload_and_keeps_the_first(self, backend: Backend) -> None:
        (job_id,) = dead(backend)
        assert backend.operator.retry_edited(job_id, '{"image_id": 8}', 2, keys='{"image_id":"8"}').done == (job_id,)
        row = job(backend, job_id)
        assert (row.status, row.payload, row.payload_version, row.attempts) == ("queued", {"image_id": 8}, 2, 0)
        assert row.concurrency_key == '{"image_id":"8"}'
        assert row.context == {"first": {"payload": {"image_id": 7}, "payload_version": 1}}
        assert [one.message for one in row.history] == ["disk on fire"]
        claim = take_one(backend)
        assert (json.loads(claim.payload), claim.payload_version) == ({"image_id": 8}, 2)
        assert json.loads(claim.context or "null") == row.context

    def test_of_several_edits_the_first_payload_is_kept(self, backend: Backend) -> None:
        put(backend, context='{"language": "de"}')
        for number in (8, 9):
            claim = take_one(backend)
            bury(backend, claim)
            backend.operator.retry_edited(claim.id, json.dumps({"image_id": number}), 1)
        row = job(backend, claim.id)
        assert row.payload == {"image_id": 9}
        assert row.context == {"language": "de", "first": {"payload": {"image_id": 7}, "payload_version": 1}}

    def test_surroundings_that_are_no_surroundings_make_way_for_the_first_payload(self, backend: Backend) -> None:
        put(backend, context='["de"]')
        claim = take_one(backend)
        bury(backend, claim)
        assert backend.operator.retry_edited(claim.id, "{}", 1).done == (claim.id,)
        assert job(backend, claim.id).context == {"first": {"payload": {"image_id": 7}, "payload_version": 1}}

    def test_what_cannot_be_retried_keeps_its_payload(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        running, done = take(backend)
        assert finish(backend, done)
        waiting = put(backend)
        for job_id, status in ((waiting, "queued"), (running.id, "in_progress"), (done.id, "completed")):
            handled = backend.operator.retry_edited(job_id, "{}", 2)
            assert handled.done == ()
            assert f"is {status}" in handled.refused[0].reason
            row = job(backend, job_id)
            assert (row.status, row.payload, row.payload_version, row.context) == (status, {"image_id": 7}, 1, None)
        assert backend.operator.retry_edited("nosuch", "{}", 1).refused == (Refusal("nosuch", "does not exist"),)

    def test_an_edit_is_refused_where_the_job_was_updated_since_it_was_looked_at(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        bury(backend, claim)
        seen = job(backend, claim.id).updated_at
        handled = backend.operator.retry_edited(claim.id, "{}", 1, seen - MINUTE)
        assert handled.refused == (Refusal(claim.id, "has changed since it was looked at"),)
        assert job(backend, claim.id).payload == {"image_id": 7}
        assert backend.operator.retry_edited(claim.id, "{}", 1, seen).done == (claim.id,)

    def test_an_edit_is_refused_where_a_newer_job_holds_the_unique_key(self, backend: Backend) -> None:
        put(backend, unique_key="seven")
        claim = take_one(backend)
        bury(backend, claim)
        put(backend, unique_key="seven")
        handled = backend.operator.retry_edited(claim.id, "{}", 1)
        assert handled.refused == (Refusal(claim.id, "a newer job holds its unique key 'seven'"),)
        assert (job(backend, claim.id).payload, job(backend, claim.id).context) == ({"image_id": 7}, None)

    # Amendment

    @pytest.mark.parametrize(
        ("amendment", "changed"),
        [
            (Amendment(queue="mail"), {"queue": "mail"}),
            (Amendment(priority=1), {"priority": 1}),
            (Amendment(scheduled_at=NOON + HOUR), {"scheduled_at": NOON + HOUR}),
            (Amendment(now=True), {"scheduled_at": NOON + MINUTE}),
            (
                Amendment(queue="mail", priority=10, now=True),
                {"queue": "mail", "priority": 10, "scheduled_at": NOON + MINUTE},
            ),
        ],
    )
    def test_an_amendment_changes_what_it_names_and_nothing_else(
        self, backend: Backend, clock: VirtualClock, amendment: Amendment, changed: dict[str, object]
    ) -> None:
        job_id = put(backend, delay=timedelta(days=1))
        before = job(backend, job_id)
        clock.advance(MINUTE)
        assert backend.operator.amend([job_id], amendment).done == (job_id,)
        after = job(backend, job_id)
        assert {name: getattr(after, name) for name in changed} == changed
        for name in {"queue", "priority", "scheduled_at", "status", "attempts", "payload", "fence"} - set(changed):
            assert getattr(after, name) == getattr(before, name)
        assert after.updated_at == clock.now()

    def test_only_what_waits_is_amended(self, backend: Backend) -> None:
        (given_up,) = dead(backend)
        put_all(backend, draft(), draft(), draft())
        running, done, stopped = take(backend)
        assert finish(backend, done)
        bury(backend, stopped)
        waiting = put(backend)
        ids = [waiting, running.id, done.id, given_up, "nosuch"]
        handled = backend.operator.amend(ids, Amendment(queue="mail", priority=1))
        assert handled.done == (waiting,)
        reasons = {refusal.id: refusal.reason for refusal in handled.refused}
        assert reasons["nosuch"] == "does not exist"
        assert "is in_progress; only queued jobs can be changed" in reasons[running.id]
        assert [job(backend, job_id).queue for job_id in ids[:-1]] == ["mail", *["default"] * 3]

    def test_a_job_that_was_moved_is_claimed_from_its_new_queue(self, backend: Backend) -> None:
        job_id = put(backend)
        backend.operator.amend([job_id], Amendment(queue="mail"))
        assert take(backend, queues=frozenset({"default"})) == []
        assert [claim.id for claim in take(backend, queues=frozenset({"mail"}))] == [job_id]

    def test_a_better_priority_is_claimed_first(self, backend: Backend) -> None:
        first, second = put_all(backend, draft(), draft())
        backend.operator.amend([second], Amendment(priority=1))
        assert [claim.id for claim in take(backend)] == [second, first]

    def test_a_job_put_off_is_not_claimed_before_its_time(self, backend: Backend, clock: VirtualClock) -> None:
        job_id = put(backend)
        backend.operator.amend([job_id], Amendment(scheduled_at=NOON + HOUR))
        assert take(backend) == []
        clock.advance(HOUR)
        assert take_one(backend).id == job_id

    def test_a_job_run_now_is_claimed_at_once(self, backend: Backend) -> None:
        job_id = put(backend, delay=timedelta(days=1))
        assert take(backend) == []
        backend.operator.amend([job_id], Amendment(now=True))
        assert take_one(backend).id == job_id

    # Races

    def test_race_amend_claim(self, backend: Backend) -> None:
        job_id = put(backend)
        handled, claims = overlapping(
            backend,
            lambda: backend.operator.amend([job_id], Amendment(queue="mail")),
            lambda: take(backend, queues=frozenset({"default"})),
        )
        assert (handled.done, claims) == ((job_id,), [])
        row = job(backend, job_id)
        assert (row.status, row.queue, row.attempts) == (JobStatus.QUEUED, "mail", 0)

    def test_race_claim_amend(self, backend: Backend) -> None:
        job_id = put(backend)
        claims, handled = overlapping(
            backend,
            lambda: take(backend, 1),
            lambda: backend.operator.amend([job_id], Amendment(queue="mail", priority=1)),
        )
        assert ([claim.id for claim in claims], handled.done) == ([job_id], ())
        row = job(backend, job_id)
        assert (row.status, row.queue, row.priority) == (JobStatus.IN_PROGRESS, "default", 5)
        assert finish(backend, claims[0])

    def test_race_edit_edit(self, backend: Backend) -> None:
        (job_id,) = dead(backend)
        mine, yours = overlapping(
            backend,
            lambda: backend.operator.retry_edited(job_id, '{"image_id": 8}', 1),
            lambda: backend.operator.retry_edited(job_id, '{"image_id": 9}', 1),
        )
        assert (mine.done, yours.done) == ((job_id,), ())
        row = job(backend, job_id)
        assert row.payload == {"image_id": 8}
        assert row.context == {"first": {"payload": {"image_id": 7}, "payload_version": 1}}
