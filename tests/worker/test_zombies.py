"""Tests of a worker that was frozen and wakes up too late: nothing it tries has an effect."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from jobqueue.backends.postgresql import statements as postgresql_statements
from jobqueue.errors import LeaseLost
from jobqueue.models import Attempt, Job
from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import Again, ClaimRequest, Dead, Draft, Ending, Failure, Later, Progress
from jobqueue.testing import VirtualClock
from tests.app.worker_jobs import hold_once, keep_interpreter, late_atomic, late_verb, note_run, tick
from tests.conftest import make_sql_backend
from tests.worker.harness import children, freeze, is_gone, is_resting, is_stopped, thaw, until, until_at_rest
from tests.worker.unfenced.fence import take_out

VERBS = ("complete", "fail", "snooze", "progress")
MEANWHILE = ("run-again", "running", "only-swept", "cancelled", "dead", "purged")


@pytest.fixture
def unfenced(alias, monkeypatch):
    """Take the fence out of this process."""
    take_out("sqlite" if alias == "default" else "postgresql", monkeypatch.setattr)
    yield
    postgresql_statements.cycle_statement.cache_clear()


class AnHourLater:
    """Another worker, in an hour: it ends the leases of those that stand still, and does what a test wants done."""

    def __init__(self, alias, queue):
        self.clock = VirtualClock(queue.now() + timedelta(hours=1))
        self.backend = make_sql_backend(alias, self.clock)

    def sweep(self, dead=()):
        """End every lease; jobs in ``dead`` are given up."""

        def judge(expired):
            failure = Failure.of(Ending.LEASE_LOST, message="no news")
            decision = Dead("lease lost") if expired.id in dead else Again(timedelta(0))
            return settled(expired, decision, failure)

        first = self.backend.sweep(judge)
        self.clock.advance(self.backend.second_look)
        return first.ended + (self.backend.sweep(judge).ended if first.look_again else ())

    def claim(self, queue, types=("late_verb", "late_atomic")):
        """Take what is in a queue."""
        wanted = ClaimRequest(limit=20, types=frozenset(types), queues=frozenset({queue}))
        claims = []
        while (cycle := self.backend.cycle("other", (), wanted)).claims or cycle.next_due == timedelta(0):
            claims += cycle.claims
        return claims

    def complete(self, claims):
        """Store a result of its own."""
        return self.backend.cycle("other", [completed(one, '"other"') for one in claims]).refused


@pytest.fixture
def other(alias, queue):
    return AnHourLater(alias, queue)


def picture(alias, *receipts):
    """Everything that is stored of some jobs."""
    ids = [one.id for one in receipts]
    rows = {row["id"]: row for row in Job.objects.using(alias).filter(pk__in=ids).values()}
    past = list(Attempt.objects.using(alias).filter(job_id__in=ids).order_by("job_id", "fence").values())
    return {one: (rows.get(one), [row for row in past if row["job_id"] == one]) for one in ids}


@dataclass
class Scene:
    """Jobs of a worker that stands still: each with the verb it will try, and what has become of it meanwhile."""

    alias: str
    receipts: dict
    other: AnHourLater

    def go_on_without_it(self):
        """Sweep, and let each job come to what its queue is named for."""
        ids = {place: [one.id for key, one in self.receipts.items() if key[1] == place] for place in MEANWHILE}
        self.other.backend.operator.cancel(ids["cancelled"])
        assert len(self.other.sweep(dead=ids["dead"])) == len(self.receipts)
        assert self.other.complete(self.other.claim("run-again")) == ()
        self.running = self.other.claim("running")
        assert len(self.running) == len(VERBS)
        assert len(self.other.backend.operator.purge(ids["purged"]).done) == len(VERBS)

    def changed(self, before, after):
        """Say whose row or history is another one now."""
        return {key for key, one in self.receipts.items() if before[one.id] != after[one.id]}


def wake_too_late(start_worker, ledger, alias, other, **given):
    """Play the scene; return it, and what was changed by the worker that woke."""
    receipts = {
        (verb, place): late_verb.using(queue=place).enqueue(verb=verb, gate="wake")
        for verb in VERBS
        for place in MEANWHILE
    }
    worker = start_worker("--concurrency", str(len(receipts)), **given)
    until(lambda: ledger.started(*(one.id for one in receipts.values())))
    supervisor, zygote, *executors = worker.family
    until_at_rest(supervisor)  # in the midst of a statement it would take SQLite's lock along
    freeze(supervisor, zygote, *executors)
    scene = Scene(alias, receipts, other)
    scene.go_on_without_it()
    before = picture(alias, *receipts.values())
    # The handlers first, so that what they come to lies ready when the supervisor wakes and offers it.
    ledger.open_gate("wake")
    thaw(*executors)
    until(lambda: len(ledger.entries("verb")) == len(receipts))
    until(lambda: len(ledger.entries("reported")) == len(MEANWHILE))
    until(lambda: all(map(is_resting, executors)), what="executors that have sent all they had to say")
    thaw(supervisor, zygote)
    until(lambda: all(one.id in worker.output for one in receipts.values()), what="an event of each job")
    return scene, scene.changed(before, picture(alias, *receipts.values()))


def test_nothing_that_a_worker_tries_after_its_leases_ended_changes_a_job(start_worker, ledger, alias, other):
    scene, changed = wake_too_late(start_worker, ledger, alias, other)
    assert changed == set()
    assert other.complete(scene.running) == ()
    for (_, place), receipt in scene.receipts.items():
        row = Job.objects.using(alias).filter(pk=receipt.id).first()
        if place in ("run-again", "running"):
            assert (row.status, row.result, row.fence) == ("completed", "other", 2)


def test_without_the_fence_a_late_worker_changes_what_others_did(start_worker, ledger, alias, other):
    _, changed = wake_too_late(start_worker, ledger, alias, other, apps=("tests.worker.unfenced",))
    assert {verb for verb, _ in changed} == set(VERBS)
    assert {place for _, place in changed} == set(MEANWHILE) - {"purged"}


@contextmanager
def locked(path):
    """Lock a file for as long as a block takes."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield str(path)


def is_waited_for(path):
    """Return whether somebody waits for the lock of a file, so that the interpreter lock is kept until it is free."""
    inode = f":{Path(path).stat().st_ino}"
    waiting = (line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line)
    return any(word.endswith(inode) for words in waiting for word in words)


def complete_atomically_too_late(start_worker, jobs, ledger, alias, other, **given):
    """Let a worker stand still after it has claimed an atomic job, and wake after another has done that job."""
    worker = start_worker("--concurrency", "2", **given)
    # While the first keeps the interpreter lock, the second is claimed and given out, and cannot begin.
    with locked(ledger.folder / "lock") as lock:
        hog = keep_interpreter.enqueue(lock=lock)
        until(lambda: ledger.started(hog.id) and is_waited_for(lock), what="the job that keeps the interpreter lock")
        receipt = late_atomic.enqueue()
        jobs.until("in_progress", receipt)
        # A row tells that the job is claimed; that the executor has been told, only the supervisor's rest does.
        until_at_rest(worker.pid)
        freeze(*worker.family)
    assert not ledger.started(receipt.id)
    other.sweep()
    assert other.complete(claims := other.claim("default")) == ()
    assert [one.id for one in claims] == [receipt.id]
    before = picture(alias, receipt)
    thaw(*worker.executors)
    until(lambda: ledger.runs(receipt.id) and ledger.runs(receipt.id)[0].ended, what="the end of the handler")
    written = Group.objects.using(alias).filter(name__contains=receipt.id)
    if given:
        # The fence is not all: a supervisor that is awake sees the loss, and stops the handler before it commits.
        until(written.exists, what="a commit that nothing stands in the way of")
    thaw(*worker.family)
    until(lambda: receipt.id in worker.output, what="an event of the job")
    changes = picture(alias, receipt) != before, written.exists()
    written.delete()
    return changes


def test_an_atomic_completion_after_the_lease_rolls_everything_back(start_worker, jobs, ledger, alias, other):
    assert complete_atomically_too_late(start_worker, jobs, ledger, alias, other) == (False, False)


def test_without_the_fence_an_atomic_completion_comes_through_too_late(start_worker, jobs, ledger, alias, other):
    unfenced = complete_atomically_too_late(start_worker, jobs, ledger, alias, other, apps=("tests.worker.unfenced",))
    assert unfenced == (True, True)


def test_a_worker_that_stood_still_for_longer_than_its_leases_goes_on_and_the_other_run_stands(
    queue, start_worker, jobs, ledger
):
    sleeper = start_worker("--lease", "2")
    receipts = [hold_once.enqueue(gate="wake"), tick.enqueue(gate="go")]
    until(lambda: ledger.started(*(one.id for one in receipts)))
    asleep = sleeper.family
    freeze(*asleep)
    until(lambda: all(jobs.get(one).lease_until < queue.now() for one in receipts), what="the ends of leases")
    second = start_worker("--lease", "2")
    jobs.until("completed", receipts[0])
    until(lambda: len(ledger.runs(receipts[1].id)) == 2)
    ledger.open_gate("wake")
    thaw(*asleep)
    # Its executors end, because their leases did; the one that runs the job now is not disturbed.
    until(lambda: all(map(is_gone, asleep[2:])) and children(asleep[1]), what="new executors")
    assert second.executors
    ledger.open_gate("go")
    for row in jobs.until("completed", *receipts):
        assert (row.result, row.fence, jobs.endings(row.id)) == ("fence 2", 2, ["lease_lost"])
    assert second.stop() == 0
    jobs.until("completed", note_run.enqueue(number=1))
    assert sleeper.stop() == 0


@pytest.mark.parametrize(
    ("ticks", "slots"), [(1, "10"), (1, "1"), (40, "10")], ids=["at once", "at once, its slots full", "after a while"]
)
def test_the_executors_of_a_supervisor_that_stands_still_end_before_the_leases_do(
    queue, start_worker, jobs, ledger, ticks, slots
):
    worker = start_worker("--lease", "2", "--concurrency", slots)
    receipt = tick.enqueue(gate="go")
    until(lambda: len(ledger.entries("tick")) >= ticks)
    supervisor, _, *executors = worker.family
    freeze(supervisor)
    until(lambda: all(map(is_gone, executors)), 10, "the end of the executors")
    assert queue.now() < jobs.get(receipt).lease_until
    assert jobs.get(receipt).status == "in_progress"
    ledger.open_gate("go")
    thaw(supervisor)
    jobs.until("completed", receipt)
    assert ledger.overlaps() == []
    assert worker.stop() == 0


def test_executors_end_in_time_though_their_supervisor_stands_still_as_it_gives_them_a_job(
    queue, start_worker, jobs, ledger
):
    receipt = tick.enqueue(gate="go")
    worker = start_worker("--lease", "2", apps=("tests.worker.standing",))
    until(lambda: is_stopped(worker.pid), what="a supervisor that stands still")
    executors = worker.executors
    until(lambda: all(map(is_gone, executors)), 10, "the end of the executors")
    assert jobs.get(receipt).status == "in_progress"
    ledger.open_gate("go")
    thaw(worker.pid)
    jobs.until("completed", receipt)
    assert ledger.overlaps() == []
    assert worker.stop() == 0


# The same at the backend, verb by verb


def _settle(make: Callable) -> Callable:
    return lambda backend, claim: backend.cycle(claim.owner, [make(claim)])


def _settle_in_transaction(backend, claim):
    with backend.atomic():
        backend.settle_in_transaction(completed(claim, '"late"'))


LATE = {
    "complete": _settle(lambda claim: completed(claim, '"late"')),
    "fail": _settle(lambda claim: settled(claim, Again(timedelta(0)), Failure.of(Ending.FAILED, message="late"))),
    "bury": _settle(lambda claim: settled(claim, Dead("late"), Failure.of(Ending.FAILED, message="late"))),
    "snooze": _settle(lambda claim: settled(claim, Later(timedelta(0)), Failure.of(Ending.SNOOZED, message="late"))),
    "release": _settle(lambda claim: released(claim, "late")),
    "progress": lambda backend, claim: backend.progress([Progress(claim.id, claim.fence, claim.owner, "77")]),
    "extend": lambda backend, claim: backend.extend([claim], timedelta(minutes=30)),
    "atomic completion": _settle_in_transaction,
}


def try_late(verb, other):
    """Let a claim's holder come too late with a verb; return what it changed of the claim that runs now."""
    (receipt,) = other.backend.enqueue([Draft(id=f"late {verb}", type="late_verb", payload="{}")])
    (stale,) = other.claim("default")
    other.clock.advance(timedelta(minutes=2))
    other.sweep()
    other.claim("default")
    before = picture(other.backend.alias, receipt)
    try:
        LATE[verb](other.backend, stale)
    except LeaseLost:
        assert verb == "atomic completion"
    return picture(other.backend.alias, receipt) != before


@pytest.mark.parametrize("verb", LATE)
def test_a_late_verb_changes_nothing(verb, other):
    assert not try_late(verb, other)


@pytest.mark.parametrize("verb", LATE)
def test_a_late_verb_comes_through_without_the_fence(verb, other, unfenced):
    assert try_late(verb, other)
