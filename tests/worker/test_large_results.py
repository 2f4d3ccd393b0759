"""Tests of results at the size limit: they cost neither leases nor attempts."""

from __future__ import annotations

import threading

import pytest

from jobqueue.models import Job
from jobqueue.worker.executor.outgoing import Outgoing
from jobqueue.worker.protocol import wire
from jobqueue.worker.protocol.wire import Inbox, Word
from tests.app.worker_jobs import tick
from tests.app.worker_jobs_broken import pour, pour_out
from tests.conftest import ON_SQLITE
from tests.worker.harness import until

LARGEST = 64 * 1024 * 1024
STATES = ("status", "attempts", "fence")


@pytest.fixture
def rows(alias):
    """Look at jobs without what is large; none of that is left for others to delete."""
    jobs = Job.objects.using(alias)
    yield lambda receipts: list(jobs.filter(pk__in=[one.id for one in receipts]).values_list(*STATES))
    jobs.update(result=None)


@pytest.mark.timeout(300)
def test_six_results_of_the_largest_size_are_stored(start_worker, rows, alias):
    """More than a message holds. On Postgres both sizes are a quarter: what sends and hears them is the same."""
    part = 1 if alias == "default" else 4
    bound = {"jobqueue.worker.protocol.wire.LONGEST": wire.LONGEST // part}
    worker = start_worker(jobqueue={"MAX_RESULT_BYTES": LARGEST // part}, constants=bound)
    receipts = [pour.enqueue(size=LARGEST // part - 2) for _ in range(6)]
    until(lambda: all(row[0] not in ("queued", "in_progress") for row in rows(receipts)), 240, lambda: worker.output)
    assert rows(receipts) == [("completed", 1, 1)] * 6
    assert "ERROR" not in worker.output
    assert worker.stop() == 0


@ON_SQLITE
def test_what_no_message_holds_is_given_up_once_it_is_done(start_worker, jobs, rows):
    bound = {"jobqueue.worker.protocol.wire.LONGEST": 1_000_000}
    worker = start_worker(jobqueue={"MAX_RESULT_BYTES": LARGEST}, constants=bound)
    fits, quoted = pour.enqueue(size=900_000), pour.enqueue(size=240_000, letter='"')
    too_long, follow_ups = pour.enqueue(size=1_100_000), pour_out.enqueue(count=60, size=20_000)
    jobs.until("completed", fits, quoted)
    for dead in jobs.until("dead_letter", too_long, follow_ups):
        assert (dead.attempts, dead.end_reason) == (1, "unusable result")
        assert "too much" in dead.error
    assert "sent an invalid message" not in worker.output
    assert worker.stop() == 0


def test_large_outcomes_that_come_while_one_is_sent_do_not_come_together(channel):
    ours, theirs = channel
    outgoing = Outgoing(ours, full=1_000)
    sent = [[f"job-{number}", 1, "x" * 3_000_000] for number in range(6)]
    threads = [threading.Thread(target=outgoing.put, args=(one, 3_000_000)) for one in sent]
    for thread in threads:
        thread.start()
    inbox, heard = Inbox(longest=4_000_000), []
    while len(heard) < 6:
        heard += inbox.feed(theirs.recv(wire.AT_ONCE))
    for thread in threads:
        thread.join(10)
    assert {word for word, _ in heard} == {Word.OUTCOMES}
    assert sorted(row for _, rows in heard for row in rows) == sent


def test_executors_that_end_for_the_silence_of_their_supervisor_have_not_crashed(start_worker, jobs, ledger):
    """It is as long busy with what it was told as a lease may last, and then renews what is lost already."""
    worker = start_worker("--lease", "4", apps=("tests.worker.sluggish",))
    running = tick.enqueue(gate="go")
    until(lambda: ledger.started(running.id))
    (executor,) = worker.executors
    jobs.until("completed", pour.enqueue(size=1, letter="take your time"))
    until(lambda: jobs.history(running), what="an end of the first run")
    ledger.open_gate("go")
    (row,) = jobs.until("completed", running)
    assert executor not in worker.executors
    assert (row.attempts, row.crash_count, jobs.endings(running)) == (1, 0, ["released"])
    assert "silent" in jobs.history(running)[0].message
    assert worker.stop() == 0
