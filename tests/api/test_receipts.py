"""Tests of waiting for a job and its result, which is refused inside the job's own transaction."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction

from jobqueue import JobFailed, JobNotFound, JobQueueError, JobStatus, job
from jobqueue.handlers.registry import registry
from jobqueue.policy.settling import completed, settled
from jobqueue.records import Dead, Ending, Failure
from jobqueue.testing.contract.harness import take
from tests.app.jobs import Resize, keep


def _end(queue, settlement_of):
    """Take the job that waits and settle it, from a thread with a connection of its own."""

    def work():
        (claim,) = take(queue, 1, types=frozenset({"keep"}))
        queue.cycle("me", [settlement_of(claim)])
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_result_of_a_job_can_be_waited_for(queue):
    receipt = keep.enqueue(value=7)
    thread = _end(queue, lambda claim: completed(claim, '{"kept": 7}'))
    assert receipt.result(timeout=10) == {"kept": 7}
    assert receipt.wait(timeout=1).status is JobStatus.COMPLETED
    thread.join()


def test_a_job_that_failed_has_no_result(queue):
    receipt = keep.enqueue(value=7)
    failure = Failure.of(Ending.FAILED, message="disk on fire")
    thread = _end(queue, lambda claim: settled(claim, Dead("attempts used up"), failure))
    with pytest.raises(JobFailed, match="dead letter: disk on fire"):
        receipt.result(timeout=10)
    thread.join()


def test_waiting_comes_to_an_end(queue):
    receipt = keep.enqueue(value=7)
    with pytest.raises(TimeoutError, match="still queued"):
        receipt.wait(timeout=0.05)


def test_a_job_that_is_gone_is_not_waited_for(queue):
    receipt = keep.enqueue(value=7)
    queue.operator.purge([receipt.id])
    with pytest.raises(JobNotFound):
        receipt.wait(timeout=5)


def test_a_result_can_be_awaited_while_other_tasks_go_on(queue):
    steps = []

    async def tick():
        while True:
            steps.append("tick")
            await asyncio.sleep(0.01)

    async def view():
        ticking = asyncio.create_task(tick())
        receipt = await keep.aenqueue(value=7)
        with pytest.raises(TimeoutError, match="still queued"):
            await receipt.aresult(timeout=0.2)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await receipt
        assert len(steps) >= 5
        thread = _end(queue, lambda claim: completed(claim, '{"kept": 7}'))
        assert await receipt.aresult(timeout=10) == {"kept": 7}
        assert (await receipt).status is JobStatus.COMPLETED
        ticking.cancel()
        return thread

    async_to_sync(view)().join()


def test_a_job_that_failed_or_is_gone_is_told_to_async_code_too(queue):
    receipt, gone = keep.enqueue(value=7), keep.enqueue(value=8)
    queue.operator.purge([gone.id])
    failure = Failure.of(Ending.FAILED, message="disk on fire")
    thread = _end(queue, lambda claim: settled(claim, Dead("attempts used up"), failure))
    with pytest.raises(JobFailed, match="dead letter: disk on fire"):
        async_to_sync(receipt.aresult)(timeout=10)
    with pytest.raises(JobNotFound):
        async_to_sync(gone.aresult)(timeout=10)
    thread.join()


def test_a_result_is_what_the_signature_says(queue, monkeypatch):
    monkeypatch.setattr(registry, "_types", {})

    def keep_size(value: Any) -> Resize: ...

    kept = job("keep")(keep_size).enqueue(value=7)
    thread = _end(queue, lambda claim: completed(claim, '{"image_id":7,"width":1}'))
    assert kept.result(timeout=10) == Resize(image_id=7, width=1)
    assert kept.wait().result == {"image_id": 7, "width": 1}
    thread.join()
    del registry._types["keep"]
    assert kept.result() == {"image_id": 7, "width": 1}


def test_nobody_waits_inside_the_transaction_that_enqueued_the_job(queue, alias):
    with transaction.atomic(using=alias), pytest.raises(JobQueueError, match="commit first"):
        keep.enqueue(value=7).wait()
