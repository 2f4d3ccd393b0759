"""Tests of the operator's actions: retry, cancel, purge, pause and resume, and their refusals."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from jobqueue.backends.base import Backend
from jobqueue.policy.settling import released
from jobqueue.records import DeadLetterCount, Filter, PauseRecord, QueueStats, Refusal, Scope, Stopped
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    bury,
    draft,
    failing,
    finish,
    job,
    put,
    put_all,
    settle,
    take,
    take_one,
)


class OperatorContract(Contract):
    """Tests of the operator's actions."""

    def test_a_dead_letter_is_retried_with_all_its_attempts(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, max_retries=1)
        claim = take_one(backend)
        bury(backend, claim)
        clock.advance(100)
        assert backend.operator.retry([claim.id]).done == (claim.id,)
        row = job(backend, claim.id)
        assert (row.status, row.attempts, row.error, row.end_reason) == (JobStatus.QUEUED, 0, None, None)
        assert (row.scheduled_at, row.completed_at, row.fence) == (clock.now(), None, 1)
        assert [one.message for one in row.history] == ["disk on fire"]
        assert take_one(backend).fence == 2

    def test_a_cancelled_job_is_retried_too(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert settle(backend, failing(claim, Stopped("cancelled"))) == ()
        assert backend.operator.retry([claim.id]).done == (claim.id,)

    def test_what_expired_is_retried_without_its_expiry(self, backend: Backend, clock: VirtualClock) -> None:
        job_id = put(backend, expires_at=NOON + timedelta(seconds=1))
        backend.operator.cancel([job_id])
        clock.advance(5)
        backend.operator.retry([job_id])
        assert take_one(backend).id == job_id

    def test_only_what_has_failed_is_retried(self, backend: Backend) -> None:
        waiting = put(backend, delay=timedelta(days=1))
        put_all(backend, draft(), draft())
        running, done = take(backend)
        assert finish(backend, done)
        handled = backend.operator.retry([waiting, running.id, done.id, "nosuch"])
        assert handled.done == ()
        reasons = {refusal.id: refusal.reason for refusal in handled.refused}
        assert "is queued" in reasons[waiting]
        assert "is in_progress" in reasons[running.id]
        assert "is completed" in reasons[done.id]
        assert reasons["nosuch"] == "does not exist"

    def test_a_retry_is_refused_where_a_newer_job_holds_the_unique_key(self, backend: Backend) -> None:
        put(backend, unique_key="seven")
        first = take_one(backend)
        bury(backend, first)
        second = put(backend, unique_key="seven")
        handled = backend.operator.retry([first.id])
        assert handled.refused == (Refusal(first.id, "a newer job holds its unique key 'seven'"),)
        assert job(backend, first.id).status is JobStatus.DEAD_LETTER
        assert finish(backend, take_one(backend))
        assert backend.operator.retry([first.id]).done == (first.id,)
        assert second != first.id

    def test_a_queued_job_is_cancelled_at_once(self, backend: Backend) -> None:
        job_id = put(backend)
        assert backend.operator.cancel([job_id]).done == (job_id,)
        row = job(backend, job_id)
        assert (row.status, row.end_reason, row.completed_at) == (JobStatus.FAILED, "cancelled", NOON)
        assert take(backend) == []

    def test_a_running_job_is_asked_to_stop_and_may_still_complete(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert backend.operator.cancel([claim.id]).done == (claim.id,)
        assert (job(backend, claim.id).status, job(backend, claim.id).cancel_requested_at) == ("in_progress", NOON)
        assert finish(backend, claim)
        assert job(backend, claim.id).status is JobStatus.COMPLETED

    def test_a_job_asked_to_stop_does_not_go_back_to_its_queue(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        first, second = take(backend)
        backend.operator.cancel([first.id, second.id])
        assert settle(backend, failing(first), released(second)) == ()
        rows = [job(backend, first.id), job(backend, second.id)]
        assert [(row.status, row.end_reason) for row in rows] == [(JobStatus.FAILED, "cancelled")] * 2
        assert all(row.completed_at == NOON for row in rows)

    def test_an_old_wish_to_stop_is_forgotten_by_the_next_claim(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        backend.operator.cancel([claim.id])
        bury(backend, claim)
        backend.operator.retry([claim.id])
        again = take_one(backend)
        assert settle(backend, failing(again)) == ()
        assert job(backend, claim.id).status is JobStatus.QUEUED

    def test_what_has_ended_is_not_cancelled(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert finish(backend, claim)
        handled = backend.operator.cancel([claim.id, "nosuch"])
        assert handled.done == ()
        assert {one.id: one.reason for one in handled.refused} == {
            claim.id: "is completed already",
            "nosuch": "does not exist",
        }

    def test_a_purge_takes_job_and_history_and_leaves_what_runs(self, backend: Backend) -> None:
        put_all(backend, draft(idempotency_key="a"), draft(), draft())
        dead, running, waiting = take(backend)
        bury(backend, dead)
        settle(backend, released(waiting))
        handled = backend.operator.purge([dead.id, running.id, waiting.id])
        assert set(handled.done) == {dead.id, waiting.id}
        assert handled.refused == (Refusal(running.id, "is running; cancel it first"),)
        assert backend.jobs.get(dead.id) is None
        again = put(backend, idempotency_key="a")
        assert job(backend, again).history == ()

    def test_a_pause_is_remembered_with_its_reason(self, backend: Backend) -> None:
        assert backend.operator.pause(Scope.QUEUE, "mail", "the provider is down")
        assert not backend.operator.pause(Scope.QUEUE, "mail", "still")
        assert backend.operator.pauses() == [PauseRecord(Scope.QUEUE, "mail", "the provider is down", NOON)]
        assert backend.operator.resume(Scope.QUEUE, "mail")
        assert not backend.operator.resume(Scope.QUEUE, "mail")
        assert backend.operator.pauses() == []

    def test_stats_count_what_waits_and_what_runs(self, backend: Backend, clock: VirtualClock) -> None:
        assert backend.jobs.stats() == []
        put_all(backend, draft(), draft(), draft(delay=timedelta(hours=1)), draft("greet", queue="mail"))
        clock.advance(1)
        assert finish(backend, take_one(backend))
        take_one(backend)
        assert backend.jobs.stats() == [
            QueueStats("default", "resize", queued=1, delayed=1, in_progress=1, oldest_due_at=None),
            QueueStats("mail", "greet", queued=1, delayed=0, in_progress=0, oldest_due_at=NOON),
        ]

    def test_a_job_that_is_not_there_is_nothing(self, backend: Backend) -> None:
        assert backend.jobs.get("nosuch") is None

    def test_dead_letters_are_counted_by_queue_and_type(self, backend: Backend) -> None:
        assert backend.jobs.dead_letters() == []
        put_all(backend, draft(), draft(), draft("greet", queue="mail"), draft("rare"))
        for claim in take(backend):
            bury(backend, claim) if claim.type != "rare" else finish(backend, claim)
        assert backend.jobs.dead_letters() == [
            DeadLetterCount("default", "resize", 2),
            DeadLetterCount("mail", "greet", 1),
        ]

    def test_a_filter_lets_through_what_it_names(self, backend: Backend, clock: VirtualClock) -> None:
        early = put(backend, tenant="acme")
        clock.advance(60)
        mail = put(backend, "greet", queue="mail")
        (claim,) = take(backend, 1, types=frozenset({"greet"}))
        bury(backend, claim)

        def found(**wanted: Any) -> list[str]:
            assert backend.jobs.count(Filter(**wanted)) == len(backend.jobs.find_ids(Filter(**wanted), 10))
            rows = backend.jobs.find(Filter(**wanted), 10)
            assert [row.id for row in rows] == backend.jobs.find_ids(Filter(**wanted), 10)
            return [row.id for row in rows]

        assert found() == [early, mail]
        assert found(statuses=frozenset({JobStatus.DEAD_LETTER})) == [mail]
        assert found(statuses=frozenset(JobStatus)) == [early, mail]
        assert found(types=frozenset({"resize", "nosuch"})) == [early]
        assert found(queues=frozenset({"mail"})) == [mail]
        assert found(tenant="acme") == [early]
        assert found(error="DISK on") == [mail]
        assert found(error="%") == []
        assert found(created_after=NOON + timedelta(seconds=60)) == [mail]
        assert found(created_before=NOON + timedelta(seconds=60)) == [early]
        assert found(id_prefix=mail) == [mail]
        assert found(id_prefix="nosuch") == []
        assert found(queues=frozenset({"mail"}), tenant="acme") == []

    def test_what_is_found_is_read_as_get_reads_it_without_its_history(self, backend: Backend) -> None:
        put(backend, timeout=timedelta(seconds=2))
        bury(backend, take_one(backend))
        (row,) = backend.jobs.find(Filter(), 10)
        assert row == replace(job(backend, row.id), history=())
        assert len(job(backend, row.id).history) == 1

    def test_pages_follow_each_other_in_order_of_id(self, backend: Backend) -> None:
        ids = put_all(backend, *(draft() for _ in range(5)))
        assert [row.id for row in backend.jobs.find(Filter(), 2)] == ids[:2]
        assert backend.jobs.find_ids(Filter(), 2, after_id=ids[1]) == ids[2:4]
        assert backend.jobs.find_ids(Filter(), 2, after_id=ids[4]) == []
        assert [row.id for row in backend.jobs.find(Filter(), 2, newest_first=True)] == ids[:2:-1]
        assert [row.id for row in backend.jobs.find(Filter(), 9, ids[2], newest_first=True)] == ids[1::-1]

    def test_a_count_stops_at_its_cap(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(5)))
        assert [backend.jobs.count(Filter(), cap) for cap in (2, 5, 9, None)] == [2, 5, 5, 5]

    def test_what_a_claim_takes_first_is_ahead(self, backend: Backend, clock: VirtualClock) -> None:
        mine = put(backend, delay=timedelta(seconds=5))
        put_all(
            backend,
            draft(),
            draft(priority=1, delay=timedelta(seconds=9)),
            draft(priority=1, delay=timedelta(seconds=60)),
            draft(priority=9),
            draft(queue="mail"),
            draft("greet"),
        )
        clock.advance(10)
        assert [backend.jobs.ahead_of(job(backend, mine), cap) for cap in (9, 2)] == [4, 2]
        backend.operator.pause(Scope.QUEUE, "mail")
        backend.operator.pause(Scope.TYPE, "greet")
        assert backend.jobs.ahead_of(job(backend, mine), 9) == 2
        assert [claim.id for claim in take(backend, 3)][-1] == mine

    def test_a_backend_tells_the_time_by_which_it_judges(self, backend: Backend, clock: VirtualClock) -> None:
        clock.advance(7)
        assert backend.now() == NOON + timedelta(seconds=7)
