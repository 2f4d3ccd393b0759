"""Tests of children that handlers fork: they never act as the executor, and end where it would continue."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from tests.app.worker_jobs import note_run
from tests.app.worker_jobs_broken import (
    fork,
    fork_and_await,
    fork_async,
    fork_atomic,
    fork_in_pool,
    fork_in_thread,
    tick_async,
)
from tests.worker.harness import children, until

#: How a child comes back from its handler, and its exit status then.
ENDS = {"returns": 0, "raises": 1, "exits": 3}
HANDLERS = {"a thread": fork, "a transaction": fork_atomic, "a coroutine": fork_async}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("which", HANDLERS)
@pytest.mark.parametrize("processes", ["1", "0"], ids=["process", "in process"])
def test_a_child_that_comes_back_from_its_handler_ends_there(start_worker, jobs, ledger, alias, processes, which, how):
    worker = start_worker("--processes", processes, up=int(processes) or None)
    receipts = [HANDLERS[which].enqueue(how=how) for _ in range(2)]
    for row in jobs.until("completed", *receipts):
        assert (row.result, row.attempts, row.fence, row.crash_count) == ("parent", 1, 1, 0)
    assert [one["status"] for one in ledger.entries("parent")] == [ENDS[how]] * 2
    assert [one["is_open"] for one in ledger.entries("child")] == [False] * 2
    jobs.until("completed", note_run.enqueue(number=1))
    written = Group.objects.using(alias).filter(name__startswith="written by")
    names = sorted(one.name for one in written)
    written.delete()
    expected = sorted(f"written by {one.id} 1" for one in receipts) if which == "a transaction" else []
    assert names == expected
    assert worker.stop() == 0
    until(lambda: not list(worker.relatives()), what="the end of all children")
    assert worker.output.count("Traceback") == (2 if how == "raises" else 0)
    assert "sent an invalid message" not in worker.output


@pytest.mark.parametrize("handler", [fork_in_thread, fork_in_pool, fork_and_await], ids=lambda one: one.name)
def test_a_child_that_comes_back_to_the_loop_or_a_thread_of_it_ends_there(start_worker, jobs, ledger, handler):
    worker = start_worker()
    (pid,) = worker.executors
    neighbours = [tick_async.enqueue(gate="go") for _ in range(3)]
    until(lambda: len({one["job"] for one in ledger.entries("tick")}) == 3)
    receipt = handler.enqueue(how="returns")
    (row,) = jobs.until("completed", receipt)
    assert (row.result, row.attempts, row.fence) == ("parent", 1, 1)
    assert [one["status"] for one in ledger.entries("parent")] == [0]
    assert children(pid) == []
    ledger.open_gate("go")
    jobs.until("completed", *neighbours)
    assert {one["pid"] for one in ledger.entries("tick")} == {pid}
    assert worker.stop() == 0
    until(lambda: not list(worker.relatives()), what="the end of all children")
