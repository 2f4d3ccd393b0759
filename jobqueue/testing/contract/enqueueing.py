"""Tests of ``enqueue``: with the caller's transaction or not at all, and one job for each key."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.errors import IdempotencyMismatch
from jobqueue.policy.settling import completed
from jobqueue.records import Admission
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, draft, finish, job, put, put_all, settle, take, take_one


class EnqueueContract(Contract):
    """Tests of what a caller may rely on."""

    def test_a_job_is_stored_as_it_was_drafted(self, backend: Backend) -> None:
        job_id = put(
            backend,
            queue="images",
            priority=2,
            max_retries=7,
            timeout=timedelta(seconds=1.5),
            tenant="acme",
            context='{"language": "de"}',
            expires_at=NOON + timedelta(hours=1),
            payload_version=3,
        )
        stored = job(backend, job_id)
        assert (stored.status, stored.queue, stored.priority, stored.max_retries) == ("queued", "images", 2, 7)
        assert (stored.timeout, stored.tenant, stored.payload_version) == (timedelta(seconds=1.5), "acme", 3)
        assert (stored.payload, stored.context) == ({"image_id": 7}, {"language": "de"})
        assert (stored.created_at, stored.scheduled_at) == (NOON, NOON)
        assert stored.expires_at == NOON + timedelta(hours=1)
        assert (stored.attempts, stored.fence, stored.history) == (0, 0, ())

    def test_a_delay_counts_from_now_and_a_moment_stands(self, backend: Backend) -> None:
        later, then = put_all(backend, draft(delay=timedelta(minutes=5)), draft(scheduled_at=NOON + timedelta(days=1)))
        assert job(backend, later).scheduled_at == NOON + timedelta(minutes=5)
        assert job(backend, then).scheduled_at == NOON + timedelta(days=1)

    def test_many_that_differ_in_everything_are_each_stored_as_drafted(self, backend: Backend) -> None:
        said: dict[str, Any] = {
            "queue": "images",
            "priority": 2,
            "payload": '{"image_id": 8}',
            "payload_version": 3,
            "unique_key": "eight",
            "max_retries": 7,
            "timeout": timedelta(seconds=1.5),
            "tenant": "acme",
            "parent_id": "P" * 26,
            "context": '{"language": "de"}',
            "expires_at": NOON + timedelta(hours=1),
        }
        kinds = [{}, said, {"idempotency_key": "nine"}, {"delay": timedelta(minutes=5)}, {"scheduled_at": NOON}]
        alone = [job(backend, put(backend, **kind)) for kind in kinds]
        backend.operator.purge([one.id for one in alone])
        many = [job(backend, job_id) for job_id in put_all(backend, *(draft(**kind) for kind in kinds))]
        assert [replace(one, id="") for one in many] == [replace(one, id="") for one in alone]

    def test_nothing_is_stored_for_nothing(self, backend: Backend) -> None:
        assert backend.enqueue([]) == []

    def test_many_get_receipts_in_their_order(self, backend: Backend) -> None:
        drafts = [draft(idempotency_key=f"key-{9 - place}" if place % 2 else None) for place in range(10)]
        receipts = backend.enqueue(drafts)
        assert [receipt.id for receipt in receipts] == [one.id for one in drafts]
        assert all(receipt.created for receipt in receipts)

    def test_a_rolled_back_transaction_leaves_nothing(self, backend: Backend) -> None:
        called: list[str] = []
        with pytest.raises(ZeroDivisionError), backend.atomic():
            job_id = put(backend)
            others = put_all(backend, draft(), draft())
            backend.on_commit(lambda: called.append("one"))
            raise ZeroDivisionError
        assert [backend.jobs.get(one) for one in (job_id, *others)] == [None, None, None]
        assert called == []
        assert take(backend) == []

    def test_a_rolled_back_savepoint_takes_only_its_own(self, backend: Backend) -> None:
        called: list[str] = []
        with backend.atomic():
            kept = put(backend)
            backend.on_commit(lambda: called.append("kept"))
            with pytest.raises(ZeroDivisionError), backend.atomic():
                lost = put(backend)
                backend.on_commit(lambda: called.append("lost"))
                raise ZeroDivisionError
            assert called == []
        assert backend.jobs.get(lost) is None
        assert job(backend, kept).status is JobStatus.QUEUED
        assert called == ["kept"]

    def test_a_callback_outside_a_transaction_comes_at_once(self, backend: Backend) -> None:
        called: list[str] = []
        backend.on_commit(lambda: called.append("now"))
        assert called == ["now"]
        assert not backend.in_atomic()

    def test_a_callback_that_fails_harms_nobody(self, backend: Backend) -> None:
        called: list[str] = []
        with backend.atomic():
            job_id = put(backend)
            backend.on_commit(lambda: called.append(str(1 / 0)))
            backend.on_commit(lambda: called.append("next"))
        assert called == ["next"]
        assert job(backend, job_id).status is JobStatus.QUEUED

    def test_the_same_idempotency_key_yields_the_first_job(self, backend: Backend) -> None:
        first = put(backend, idempotency_key="resize-7")
        (again,) = backend.enqueue([draft(idempotency_key="resize-7")])
        assert (again.id, again.outcome, again.created, again.payload_differs) == (
            first,
            Admission.EXISTING,
            False,
            False,
        )

    def test_a_duplicate_with_another_payload_says_so(self, backend: Backend) -> None:
        put(backend, idempotency_key="resize-7")
        (again,) = backend.enqueue([draft(idempotency_key="resize-7", payload='{"image_id": 8}')])
        assert again.payload_differs

    def test_an_idempotency_key_holds_after_the_job_has_ended(self, backend: Backend) -> None:
        first = put(backend, idempotency_key="resize-7")
        assert finish(backend, take_one(backend))
        assert put(backend, idempotency_key="resize-7") == first

    def test_a_unique_key_holds_while_the_job_is_active(self, backend: Backend) -> None:
        first = put(backend, unique_key="resize-7")
        claim = take_one(backend)
        assert put(backend, unique_key="resize-7") == first
        assert finish(backend, claim)
        assert put(backend, unique_key="resize-7") != first

    @pytest.mark.parametrize("kind", ["idempotency_key", "unique_key"])
    def test_the_key_of_another_type_is_an_error(self, backend: Backend, kind: str) -> None:
        first = put(backend, **{kind: "seven"})
        with pytest.raises(IdempotencyMismatch, match=first):
            put(backend, "greet", **{kind: "seven"})

    def test_a_mismatch_among_many_stores_none_of_them(self, backend: Backend) -> None:
        put(backend, idempotency_key="seven")
        drafts = [draft("greet"), draft("greet", idempotency_key="seven"), draft("greet", idempotency_key="eight")]
        with pytest.raises(IdempotencyMismatch):
            backend.enqueue(drafts)
        assert [backend.jobs.get(one.id) for one in drafts] == [None, None, None]

    @pytest.mark.parametrize("kind", ["idempotency_key", "unique_key"])
    def test_one_key_twice_among_many_makes_one_job(self, backend: Backend, kind: str) -> None:
        drafts = [draft(), draft(**{kind: "b"}), draft(**{kind: "a"}), draft(**{kind: "b"}), draft()]
        receipts = backend.enqueue(drafts)
        assert [receipt.created for receipt in receipts].count(False) == 1
        assert receipts[1].id == receipts[3].id
        assert len(take(backend)) == 4

    def test_keys_taken_before_are_found_among_many(self, backend: Backend) -> None:
        first = put(backend, idempotency_key="a")
        receipts = backend.enqueue([draft(idempotency_key="b"), draft(idempotency_key="a"), draft()])
        assert [receipt.created for receipt in receipts] == [True, False, True]
        assert receipts[1].id == first

    def test_a_draft_stored_before_is_not_stored_twice(self, backend: Backend) -> None:
        relayed = draft()
        assert backend.enqueue([relayed])[0].created
        assert not backend.enqueue([relayed])[0].created
        assert [one.created for one in backend.enqueue([relayed, draft()])] == [False, True]

    @pytest.mark.parametrize("kind", ["idempotency_key", "unique_key"])
    def test_a_draft_whose_job_has_ended_is_not_stored_again(self, backend: Backend, kind: str) -> None:
        relayed = draft(**{kind: "seven"})
        backend.enqueue([relayed])
        assert finish(backend, take_one(backend))
        assert backend.enqueue([relayed])[0].outcome is Admission.EXISTING
        assert [one.created for one in backend.enqueue([draft(), relayed])] == [True, False]
        assert job(backend, relayed.id).status is JobStatus.COMPLETED

    def test_a_settled_job_stays_as_it_is_when_its_draft_comes_again(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        relayed = draft()
        backend.enqueue([relayed])
        assert settle(backend, completed(take_one(backend), '"done"')) == ()
        clock.advance(60)
        assert backend.enqueue([relayed])[0].id == relayed.id
        assert job(backend, relayed.id).result == "done"
