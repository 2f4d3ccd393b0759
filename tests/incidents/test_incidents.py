"""Incidents that rows can stage: what the dashboard and ``jobqueue status`` say of them, on one line each."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connections

from jobqueue.cli import exits
from jobqueue.handlers.registry import registry
from jobqueue.models import Job, Pause, Worker
from jobqueue.observe.health import Cause, findings, look
from jobqueue.records import Limit, LimitKind, Progress, Scope
from jobqueue.testing.contract.harness import bury, draft, put, put_all, take
from tests.sql.test_plans import LONG_AGO, all_visible, fill

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_no_worker_was_started(named, over, due, worker):
    due()
    assert named("No worker is up: 1 job is due.", Cause.NO_WORKER) == exits.WARNING
    worker()
    over(Cause.NO_WORKER)


def test_a_worker_of_two_fell_silent(named, over, queue, worker, change):
    worker("first")
    worker("second")
    change[Worker]({"name": "second"}, seen_at=queue.now() - 2 * MINUTE)
    change[Worker]({"name": "first"}, started_at=queue.now() - HOUR)
    assert named("Worker second has been silent for 2", Cause.WORKER_SILENT) == exits.WARNING
    worker("third")
    over(Cause.WORKER_SILENT)


def test_nobody_serves_twenty_queues(named, over, due, worker, faces):
    worker(queues=("other",))
    for number in range(20):
        due(queue=f"queue-{number:02}")
    words = "No live worker serves 20 queues, and 20 jobs wait in them: queue-00, queue-01, queue-02 and 17 more."
    assert named(words, Cause.QUEUE_NOT_SERVED) == exits.WARNING
    (found,) = faces()[2].json["findings"]
    assert len(found["parts"]) == 20
    worker("another")
    over(Cause.QUEUE_NOT_SERVED)


def test_a_release_forgot_a_type(named, over, due, worker):
    worker(types=("resize_image",))
    due()
    assert named("No live worker takes jobs of type send_welcome", Cause.TYPE_NOT_SERVED) == exits.WARNING
    worker("another")
    over(Cause.TYPE_NOT_SERVED)


def test_all_of_one_type_die(named, over, queue, worker, counted, dead):
    worker()
    counted(completed=1_000, ago=3 * HOUR)
    counted(dead_lettered=500)
    dead("send_welcome", 500)
    words = "Jobs of type send_welcome fail: 500 of 500 attempts"
    assert named(words, Cause.FAILING) == exits.ERROR
    counted(completed=5_000)  # as it fails no longer, and somebody retries
    Job.objects.using(queue.alias).all().delete()
    over(Cause.FAILING, Cause.DIED_LATELY)


def test_a_type_fails_more_than_it_used_to(named, over, worker, counted):
    worker()
    counted("send_welcome", completed=1_000, retried=10, ago=3 * HOUR)
    counted("resize_image", completed=400, retried=600, ago=3 * HOUR)
    counted("send_welcome", completed=40, retried=60)
    counted("resize_image", completed=40, retried=60)  # as always
    assert named("Jobs of type send_welcome fail: 60 of 100 attempts", Cause.FAILING) == exits.WARNING
    counted("send_welcome", completed=1_000)
    over(Cause.FAILING)


def test_some_jobs_die(named, over, queue, worker, counted, dead):
    worker()
    counted(completed=1_000, dead_lettered=3)
    dead("send_welcome", 7)
    words = "3 jobs of type send_welcome became dead letters in the last hour; 7 wait in all."
    assert named(words, Cause.DIED_LATELY) == exits.WARNING
    queue.operator.retry([job.pk for job in Job.objects.using(queue.alias).all()])
    over(Cause.DIED_LATELY, Cause.DEAD_LETTERS)


def test_fifty_thousand_dead_letters_are_older_than_twenty_thousand_jobs(named, over, alias, worker):
    worker()
    names = sorted(registry.names)[:5]
    types = "CASE i % 5 " + " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names)) + " END"
    fill(alias, 50_000, name="dead", status="'dead_letter'", type=types)
    fill(alias, 20_000, name="newer", status="'completed'")
    if alias == "postgres":  # counts less far before VACUUM
        assert named("+ dead letters wait for a decision.", Cause.DEAD_LETTERS) == exits.ERROR
        all_visible(alias)
    assert named("50,000 dead letters wait for a decision.", Cause.DEAD_LETTERS) == exits.ERROR
    Job.objects.using(alias).filter(status="dead_letter").delete()
    over(Cause.DEAD_LETTERS)


def test_a_queue_is_paused_and_forgotten(named, over, queue, alias, due, worker):
    worker()
    due()
    queue.operator.pause(Scope.QUEUE, "default", "the provider is down")
    assert named("The queue default has been paused for", Cause.PAUSED) == exits.OK
    Pause.objects.using(alias).update(paused_at=queue.now() - 9 * HOUR)
    assert named("The queue default has been paused for 9", Cause.PAUSE_FORGOTTEN) == exits.WARNING
    queue.operator.resume(Scope.QUEUE, "default")
    over(Cause.PAUSE_FORGOTTEN, Cause.PAUSED)


def test_a_queue_does_not_move(named, over, due, worker, counted):
    worker()
    due(ago=20 * MINUTE)
    assert named("The queue default does not move: 1 job is due, the oldest for 20", Cause.QUEUE_STALLED) == 1
    counted(completed=1)
    over(Cause.QUEUE_STALLED)


def test_a_strict_lane_has_stopped(named, over, queue, due, worker, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"QUEUES": {"default": {"ordered": True, "strict": True}}}
    worker()
    dead = put(queue, "send_welcome", lane="*", parallel=False)
    (claim,) = take(queue, 1, types=frozenset({"send_welcome"}))
    bury(queue, claim)
    due(ago=20 * MINUTE, lane="*", parallel=False)
    words = f"A lane of the queue default has stopped at {dead}, which is a dead letter: 1 job waits."
    assert named(words, Cause.LANE_STOPPED) == exits.WARNING
    assert Cause.QUEUE_STALLED not in named_causes(queue)
    queue.operator.purge([dead])
    over(Cause.LANE_STOPPED)


def test_progress_is_stuck(named, over, queue, due, worker, change):
    known, job_id = worker(), due()
    (claim,) = take(queue, 1, owner=known.owner, types=frozenset({"send_welcome"}))
    report = Progress(claim.id, claim.fence, known.owner, '{"percent": 70}')
    queue.progress([report])
    began = queue.now() - HOUR
    change[Job]({"pk": job_id}, started_at=began, updated_at=began + 45 * MINUTE)
    words = f"Job {job_id} of type send_welcome has reported no progress for 15"
    assert named(words, Cause.PROGRESS_STUCK) == exits.WARNING
    queue.progress([report])
    over(Cause.PROGRESS_STUCK)


def test_a_job_hangs_and_holds_its_limit(named, over, queue, due, worker, change, counted):
    known, hanging = worker(), due()
    queue.limits.set(Limit(Scope.TYPE, "send_welcome", LimitKind.CONCURRENCY, 1), author="ann")
    (claim,) = take(queue, 1, owner=known.owner, types=frozenset({"send_welcome"}))
    assert claim.id == hanging
    due(ago=20 * MINUTE)
    assert not named_causes(queue)  # it runs for a moment only
    change[Job]({"pk": hanging}, started_at=queue.now() - 16 * MINUTE)
    words = "The limit of 1 at once for the type send_welcome has let nothing start for 16"
    assert named(words, Cause.LIMIT_USED_UP) == exits.WARNING
    queue.limits.set(Limit(Scope.TYPE, "send_welcome", LimitKind.CONCURRENCY, 2))
    counted(completed=1)
    over(Cause.LIMIT_USED_UP)


def named_causes(queue):
    return [one.cause for one in findings(look(queue))]


def test_a_limit_is_set_and_forgotten(named, over, queue, alias, due, worker, counted):
    worker()
    limit = Limit(Scope.QUEUE, "default", LimitKind.RATE, 1, 7_200.0)
    queue.limits.set(limit, "the provider is slow", "ann")
    due()
    assert len(take(queue, 1, types=frozenset({"send_welcome"}))) == 1
    due(ago=2 * HOUR)
    counted(completed=1)
    words = "The rate of 1 in 7200 s for the queue default is used up, and 1 job is due, the oldest for 2"
    assert named(words, Cause.LIMIT_USED_UP) == exits.WARNING
    queue.limits.unset(limit)
    over(Cause.LIMIT_USED_UP)


def test_a_tenant_floods_a_queue(named, over, queue, worker, counted):
    worker()
    counted(completed=1)
    early = queue.now() - 6 * MINUTE
    put_all(queue, *(draft("send_welcome", tenant="acme", scheduled_at=early) for _ in range(1_200)))
    put_all(queue, *(draft("send_welcome", tenant="other", scheduled_at=early, priority=9) for _ in range(3)))
    words = "The tenant acme floods the queue default"
    assert named(words, Cause.TENANT_FLOOD) == exits.WARNING
    Job.objects.using(queue.alias).filter(tenant="acme").delete()
    over(Cause.TENANT_FLOOD)


def test_clocks_are_apart(named, over, queue, worker, change):
    worker("ahead")
    change[Worker]({"name": "ahead"}, started_at=queue.now() + HOUR)
    assert named("The clock of worker ahead is", Cause.CLOCKS_APART) == exits.WARNING
    change[Worker]({"name": "ahead"}, started_at=queue.now())
    over(Cause.CLOCKS_APART)


def test_a_queue_is_full(named, over, queue, worker, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"CAPACITY": 10}
    worker()
    ids = put_all(queue, *(draft("send_welcome") for _ in range(12)))
    assert named("The queue default is full: 12 jobs wait, 120", Cause.QUEUE_FULL) == exits.ERROR
    queue.operator.cancel(ids)
    over(Cause.QUEUE_FULL)


#: A database that is out of reach.
AWAY = {"default": {"NAME": "/nowhere/jobs.sqlite3"}, "postgres": {"HOST": "127.0.0.1", "PORT": "1"}}


def test_the_database_is_away(alias, process):
    for words in (("status",), ("status", "--json")):
        told = process(*words, **AWAY[alias])
        assert (told.code, told.out) == (exits.FAILED, "")
        assert len(told.err.strip().splitlines()) == 1
        assert "The database did not answer" in told.err
    assert process("status").code == exits.OK


@pytest.fixture
def dead(alias):
    """A function that stores dead letters of a type."""

    def store(job_type, count):
        fill(alias, count, name="dead", status="'dead_letter'", type=f"'{job_type}'", completed_at=f"'{LONG_AGO}'")

    yield store
    connections[alias].close()
