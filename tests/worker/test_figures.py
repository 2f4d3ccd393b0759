"""Tests of the metrics of real workers, which are exact."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from jobqueue.policy.stretches import KEPT, together
from jobqueue.records import Scope
from tests.app.worker_jobs import die_once_stored, hold_once, note_run
from tests.app.worker_jobs_b import book, hopeless, judge, nap, third_time_lucky
from tests.worker.harness import until

ENDED = ("completed", "retried", "dead_lettered", "stopped", "lost")


@pytest.fixture
def added_up(queue):
    """A function that reads what was added up since a while ago, by type; and sees that it is what its queue had."""

    def read(span=3600):
        since, found = queue.now() - timedelta(hours=2), {}
        for part in queue.metrics.totals(Scope.TYPE, span, since):
            stretches = queue.metrics.stretches(span, since, "default", part.name)
            found[part.name] = together(one.tally for one in stretches)
        of_queue = together(one.tally for one in queue.metrics.stretches(span, since, "default"))
        assert of_queue[:-2] == together(found.values())[:-2]
        return found

    return read


def ends(tally):
    """What a tally says of how attempts ended, as far as any did so."""
    return {name: getattr(tally, name) for name in ENDED if getattr(tally, name)}


@pytest.fixture(autouse=True)
def no_groups(alias):
    """Delete what handlers wrote."""
    yield
    Group.objects.using(alias).all().delete()


@pytest.mark.parametrize("span", sorted(KEPT))
def test_a_worker_that_ends_has_added_all_that_it_did(queue, start_worker, added_up, span):
    note_run.enqueue_many([{"number": number} for number in range(40)])
    for number in range(3):
        third_time_lucky.enqueue(label=str(number))
    hopeless.enqueue_many([{}, {}])
    for verdict in ("discard", "cancel", "snooze"):
        judge.enqueue(which=verdict)
    assert start_worker("--drain", up=0).wait() == 0
    found = added_up(span)
    assert {name: ends(tally) for name, tally in found.items()} == {
        "note_run": {"completed": 40},
        "third_time_lucky": {"completed": 3, "retried": 6},
        "hopeless": {"dead_lettered": 2},
        "judge": {"dead_lettered": 1, "stopped": 1},
    }
    begun = {"note_run": 40, "third_time_lucky": 9, "hopeless": 2, "judge": 3}
    assert {name: tally.waited.number for name, tally in found.items()} == begun
    assert {name: tally.ran.number for name, tally in found.items()} == begun | {"judge": 2}
    everything = together(one.tally for one in queue.metrics.stretches(span, queue.now() - timedelta(hours=2)))
    whole = together(found.values())
    assert everything[:-2] == whole[:-2]
    assert (everything.waited.buckets, everything.ran.buckets) == (whole.waited.buckets, whole.ran.buckets)
    assert everything.ran.total == pytest.approx(whole.ran.total, abs=0.001)


def test_what_handlers_store_themselves_is_counted_and_what_follows_too(start_worker, added_up):
    book.enqueue(name="kept")
    book.enqueue(name="lost", fail=True)
    assert start_worker("--drain", up=0).wait() == 0
    found = added_up()
    assert {name: ends(tally) for name, tally in found.items()} == {
        "book": {"completed": 1, "dead_lettered": 1},
        "nap": {"completed": 1},
    }
    assert found["book"].ran.number == found["book"].waited.number == 2


def test_what_was_stored_before_its_process_died_is_counted_once(start_worker, jobs, added_up):
    receipt = die_once_stored.enqueue()
    worker = start_worker()
    worker.until_said(f"Job completed: die_once_stored {receipt.id}")
    assert worker.stop() == 0
    assert {name: ends(tally) for name, tally in added_up().items()} == {"die_once_stored": {"completed": 1}}


def test_several_workers_add_to_the_same_figures(start_worker, jobs, added_up):
    receipts = note_run.enqueue_many([{"number": number} for number in range(300)])
    workers = [start_worker("--concurrency", "2") for _ in range(3)]
    jobs.until("completed", *receipts)
    for worker in workers:
        assert worker.stop() == 0
    assert {name: ends(tally) for name, tally in added_up().items()} == {"note_run": {"completed": 300}}


def test_a_lease_that_ran_out_is_counted_by_who_sweeps_it(start_worker, jobs, ledger, added_up):
    worker = start_worker("--lease", "2")
    receipt = hold_once.enqueue(gate="never")
    until(lambda: ledger.started(receipt.id))
    worker.destroy()
    heir = start_worker("--lease", "2", constants={"jobqueue.worker.supervisor.duties.sweep.Sweep.every": 0.5})
    jobs.until("completed", receipt)
    assert heir.stop() == 0
    assert {name: ends(tally) for name, tally in added_up().items()} == {"hold_once": {"completed": 1, "lost": 1}}


def test_times_are_about_what_they_were(start_worker, added_up):
    nap.enqueue_many([{"seconds": 0.2}] * 2)
    assert start_worker("--drain", "--concurrency", "1", up=0).wait() == 0
    nap_tally = added_up()["nap"]
    assert 0.4 <= nap_tally.ran.total < 5.0
    assert nap_tally.waited.total >= 0.2  # the second one waited for the first


def test_a_worker_notes_how_deep_the_queue_is(queue, start_worker):
    queue.operator.pause(Scope.TYPE, "nap")
    nap.enqueue_many([{}, {}, {}])
    start_worker()

    def noted():
        found = queue.metrics.stretches(60, queue.now() - timedelta(minutes=5), job_type="nap")
        return [(one.queued, one.in_progress, one.oldest is not None) for one in found]

    until(lambda: noted() == [(3, 0, True)], what=lambda: f"three that wait, there is {noted()}")
