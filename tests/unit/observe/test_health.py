"""What is wrong with the queue: each cause is found from the values read, and from exact and capped ones alike."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.cli.finding_text import text
from jobqueue.observe.health import OLD, RELAYED_WITHIN, Cause, Level, Place, Reading, exact, findings
from jobqueue.records import DeadLetterCount, Depth, PauseRecord, QueueStats, Scope, WorkerRecord, WorkerState
from jobqueue.records.relay import Waiting
from jobqueue.records.worker import SILENT_FOR
from jobqueue.testing.clock import NOON


def depth(queue="default", name="resize", queued=1, **values):
    usual = {"capped": False, "due": queued, "oldest_due_at": NOON if queued else None, "in_progress": 0}
    return Depth(queue, name, queued, **usual | {"paused": False} | values)


def worker(**values):
    usual = {"owner": "host:1:ab", "name": "one", "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 2}
    return WorkerRecord(**usual | {"types": ("resize",), "started_at": NOON, "seen_at": NOON} | values)


def reading(*depths, workers=(), pauses=(), **values):
    return Reading(now=NOON, depths=depths, workers=workers, pauses=pauses, **values)


def waiting(**values):
    usual = {"count": 3, "oldest": NOON - timedelta(seconds=1), "relayed_at": None, "lost_at": None, "error": ""}
    return Waiting(**usual | values)


STOPPING = worker(state=WorkerState.STOPPING)
#: What was read, and what is found: level, cause, queues, types, and where to look.
READINGS = {
    "nothing": (reading(), []),
    "somebody takes it": (reading(depth(), workers=[worker()]), []),
    "nothing is due": (reading(depth(due=0, oldest_due_at=None)), []),
    "no worker": (reading(depth(), depth("images", due=0)), [("WARNING", "no_worker", "default images", "workers")]),
    "a silent worker": (
        reading(depth(), workers=[worker(seen_at=NOON - SILENT_FOR)]),
        [("WARNING", "no_worker", "default", "workers")],
    ),
    "no worker knows the type": (
        reading(depth(name="rare"), depth("images", "rare"), workers=[worker(), STOPPING]),
        [("WARNING", "type_not_served", "default images", "queued_jobs")],
    ),
    "the workers stop": (
        reading(depth(), workers=[STOPPING]),
        [("WARNING", "workers_stopping", "default", "queued_jobs")],
    ),
    "no worker of the queue": (
        reading(depth(), depth("images"), workers=[worker(queues=("default",)), STOPPING]),
        [("WARNING", "queue_not_served", "images", "queued_jobs")],
    ),
    "a job that is left out": (
        reading(workers=[worker(left_out={"7": "why"})]),
        [("ERROR", "job_left_out", "", "job")],
    ),
    "full": (
        reading(depth(queued=8), depth("images", queued=10), workers=[worker()], capacity=10),
        [("ERROR", "queue_full", "images", "queued_jobs"), ("WARNING", "queue_full", "default", "queued_jobs")],
    ),
    "unknown": (
        reading(depth(), dead_letters=[DeadLetterCount("mail", "old", 1)], workers=[worker()], known_types={"resize"}),
        [("WARNING", "type_unknown", "", "queued_jobs")],
    ),
    "unknown, and nobody takes it": (
        reading(depth(name="old"), workers=[worker()], known_types={"resize"}),
        [("WARNING", "type_not_served", "default", "queued_jobs")],
    ),
    "paused": (
        reading(pauses=[PauseRecord(Scope.QUEUE, "images", "why", NOON), PauseRecord(Scope.TYPE, "greet", "", NOON)]),
        [("NOTICE", "paused", "images", "queues"), ("NOTICE", "paused", "", "queues")],
    ),
    "overdue": (
        reading(depth(oldest_due_at=NOON - OLD), workers=[worker()]),
        [("NOTICE", "overdue", "default", "queued_jobs")],
    ),
    "paused for long": (reading(depth(oldest_due_at=NOON - OLD, paused=True), workers=[worker()]), []),
    "relayed": (reading(depth(), outbox=waiting()), []),
    "nothing to relay": (reading(outbox=waiting(count=0, oldest=None, lost_at=NOON)), []),
    "nobody relays": (
        reading(depth(), outbox=waiting(oldest=NOON - 2 * RELAYED_WITHIN)),
        [("WARNING", "relay_idle", "", "queued_jobs")],
    ),
    "the shared database is lost": (
        reading(outbox=waiting(lost_at=NOON, error="no route")),
        [("WARNING", "relay_lost", "", "queued_jobs")],
    ),
}


def told(one):
    return one.level.name, one.cause.value, " ".join(one.queues), one.place.value


@pytest.mark.parametrize(("seen", "wanted"), READINGS.values(), ids=READINGS)
def test_a_reading_has_these_findings(seen, wanted):
    assert [told(one) for one in findings(seen)] == wanted


def test_there_is_a_reading_for_each_cause_level_and_place():
    found = [one for seen, _wanted in READINGS.values() for one in findings(seen)]
    assert {one.cause for one in found} == set(Cause)
    assert {one.level for one in found} == set(Level) - {Level.OK}
    assert {one.place for one in found} == set(Place)


def test_the_worst_comes_first():
    seen = reading(
        depth(),
        depth(name="rare"),
        workers=[worker(left_out={"7": "why"})],
        pauses=[PauseRecord(Scope.QUEUE, "images", "", NOON)],
        capacity=1,
    )
    levels = [one.level for one in findings(seen)]
    assert levels == sorted(levels, reverse=True)
    assert len(set(levels)) == 3


def test_a_count_that_stopped_says_so():
    (one,) = findings(reading(depth(queued=10_000, capped=True), depth("images")))
    assert (one.waiting, one.is_capped) == (10_001, True)
    (one,) = findings(reading(depth(), in_part=True))
    assert one.is_capped


@pytest.mark.parametrize("workers", [(), (worker(),), (STOPPING,), (worker(queues=("mail",)),)])
def test_exact_and_capped_counts_lead_to_the_same_findings(workers):
    pauses = [PauseRecord(Scope.TYPE, "greet", "", NOON)]
    old = NOON - OLD
    stats = [
        QueueStats("images", "resize", queued=3, delayed=1, in_progress=2, oldest_due_at=old),
        QueueStats("default", "greet", queued=2, delayed=0, in_progress=0, oldest_due_at=old),
    ]
    capped = [
        depth("default", "greet", 1, capped=True, oldest_due_at=old, paused=True),
        depth("images", queued=1, capped=True, in_progress=1, oldest_due_at=old),
    ]
    first, second = (
        [told(one) for one in findings(reading(*depths, workers=workers, pauses=pauses))]
        for depths in (exact(stats, pauses), capped)
    )
    assert first == second


def test_the_commands_have_words_for_each_finding():
    sentences = [text(one, seen) for seen, _wanted in READINGS.values() for one in findings(seen)]
    assert len(set(sentences)) > len(Cause)
    assert all(sentences)
