"""An operator's verbs: retry, cancel, purge, pause and resume; what they refuse, they name."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.policy.settling import released
from jobqueue.records import Pause, QueueStats, Refusal, Scope, Stopped
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
    """What an operator may do."""

    def test_a_dead_letter_is_retried_with_all_its_attempts(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, max_retries=1)
        claim = take_one(backend)
        bury(backend, claim)
        clock.advance(100)
        assert backend.retry([claim.id]).done == (claim.id,)
        row = job(backend, claim.id)
        assert (row.status, row.attempts, row.error, row.end_reason) == (JobStatus.QUEUED, 0, None, None)
        assert (row.scheduled_at, row.completed_at, row.fence) == (clock.now(), None, 1)
        assert [one.message for one in row.history] == ["disk on fire"]
        assert take_one(backend).fence == 2

    def test_a_cancelled_job_is_retried_too(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert settle(backend, failing(claim, Stopped("cancelled"))) == ()
        assert backend.retry([claim.id]).done == (claim.id,)

    def test_what_expired_is_retried_without_its_expiry(self, backend: Backend, clock: VirtualClock) -> None:
        job_id = put(backend, expires_at=NOON + timedelta(seconds=1))
        backend.cancel([job_id])
        clock.advance(5)
        backend.retry([job_id])
        assert take_one(backend).id == job_id

    def test_only_what_has_failed_is_retried(self, backend: Backend) -> None:
        waiting = put(backend, delay=timedelta(days=1))
        put_all(backend, draft(), draft())
        running, done = take(backend)
        assert finish(backend, done)
        handled = backend.retry([waiting, running.id, done.id, "nosuch"])
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
        handled = backend.retry([first.id])
        assert handled.refused == (Refusal(first.id, "a newer job holds its unique key 'seven'"),)
        assert job(backend, first.id).status is JobStatus.DEAD_LETTER
        assert finish(backend, take_one(backend))
        assert backend.retry([first.id]).done == (first.id,)
        assert second != first.id

    def test_a_queued_job_is_cancelled_at_once(self, backend: Backend) -> None:
        job_id = put(backend)
        assert backend.cancel([job_id]).done == (job_id,)
        row = job(backend, job_id)
        assert (row.status, row.end_reason, row.completed_at) == (JobStatus.FAILED, "cancelled", NOON)
        assert take(backend) == []

    def test_a_running_job_is_asked_to_stop_and_may_still_complete(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert backend.cancel([claim.id]).done == (claim.id,)
        assert (job(backend, claim.id).status, job(backend, claim.id).cancel_requested_at) == ("in_progress", NOON)
        assert finish(backend, claim)
        assert job(backend, claim.id).status is JobStatus.COMPLETED

    def test_a_job_asked_to_stop_does_not_go_back_to_its_queue(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        first, second = take(backend)
        backend.cancel([first.id, second.id])
        assert settle(backend, failing(first), released(second)) == ()
        rows = [job(backend, first.id), job(backend, second.id)]
        assert [(row.status, row.end_reason) for row in rows] == [(JobStatus.FAILED, "cancelled")] * 2
        assert all(row.completed_at == NOON for row in rows)

    def test_an_old_wish_to_stop_is_forgotten_by_the_next_claim(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        backend.cancel([claim.id])
        bury(backend, claim)
        backend.retry([claim.id])
        again = take_one(backend)
        assert settle(backend, failing(again)) == ()
        assert job(backend, claim.id).status is JobStatus.QUEUED

    def test_what_has_ended_is_not_cancelled(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert finish(backend, claim)
        handled = backend.cancel([claim.id, "nosuch"])
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
        handled = backend.purge([dead.id, running.id, waiting.id])
        assert set(handled.done) == {dead.id, waiting.id}
        assert handled.refused == (Refusal(running.id, "is running; cancel it first"),)
        assert backend.get(dead.id) is None
        again = put(backend, idempotency_key="a")
        assert job(backend, again).history == ()

    def test_a_pause_is_remembered_with_its_reason(self, backend: Backend) -> None:
        assert backend.pause(Scope.QUEUE, "mail", "the provider is down")
        assert not backend.pause(Scope.QUEUE, "mail", "still")
        assert backend.pauses() == [Pause(Scope.QUEUE, "mail", "the provider is down", NOON)]
        assert backend.resume(Scope.QUEUE, "mail")
        assert not backend.resume(Scope.QUEUE, "mail")
        assert backend.pauses() == []

    def test_stats_count_what_waits_and_what_runs(self, backend: Backend, clock: VirtualClock) -> None:
        assert backend.stats() == []
        put_all(backend, draft(), draft(), draft(delay=timedelta(hours=1)), draft("greet", queue="mail"))
        clock.advance(1)
        assert finish(backend, take_one(backend))
        take_one(backend)
        assert backend.stats() == [
            QueueStats("default", "resize", queued=1, delayed=1, in_progress=1, oldest_due_at=None),
            QueueStats("mail", "greet", queued=1, delayed=0, in_progress=0, oldest_due_at=NOON),
        ]

    def test_a_job_that_is_not_there_is_nothing(self, backend: Backend) -> None:
        assert backend.get("nosuch") is None
