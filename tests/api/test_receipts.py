"""Waiting for a job: for its record, for its result, and never inside the transaction that made it."""

from __future__ import annotations

import threading

import pytest
from django.db import connections, transaction

from jobqueue import JobFailed, JobNotFound, JobQueueError, JobStatus
from jobqueue.policy.settling import completed, settled
from jobqueue.records import Dead, Ending, Failure
from jobqueue.testing.contract.harness import take
from tests.app.jobs import keep


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
    queue.purge([receipt.id])
    with pytest.raises(JobNotFound):
        receipt.wait(timeout=5)


def test_nobody_waits_inside_the_transaction_that_enqueued_the_job(queue, alias):
    with transaction.atomic(using=alias), pytest.raises(JobQueueError, match="commit first"):
        keep.enqueue(value=7).wait()
