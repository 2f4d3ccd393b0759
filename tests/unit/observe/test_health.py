"""What is wrong with the queue: each cause is found from the values read, and has its words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobqueue.cli.finding_text import text
from jobqueue.cli.values import WORDING
from jobqueue.observe.health import Cause, Failures, Level, Place, Reading, advice, findings, level_of, limits, sentence
from jobqueue.observe.health.failures import HOPELESS, LATELY, LEAST_ATTEMPTS, PAST, WINDOWS
from jobqueue.observe.health.finding import WithheldJobs
from jobqueue.observe.health.flow import FORGOTTEN_AFTER, RELAYED_WITHIN, STALLED_FOR, STUCK_FOR
from jobqueue.observe.health.reading import DEAD_AFTER
from jobqueue.observe.health.storage import COSTLY_DEAD_ROWS, LARGE_LOG, MANY_DEAD_ROWS
from jobqueue.observe.health.thresholds import LASTING
from jobqueue.observe.health.workers import CLOCK_TOLERANCE, PATIENCE, SILENCE_WARNS_FOR
from jobqueue.policy.alerts.rules import RuleBook
from jobqueue.policy.histogram import bucket
from jobqueue.records import (
    DeadJob,
    DeadLetterCount,
    Depth,
    Hold,
    LaneHold,
    LaneRecord,
    LapsedLeases,
    Lengths,
    Limit,
    LimitKind,
    LimitUse,
    MetricSum,
    PauseRecord,
    QueueOptions,
    QuietJob,
    Scope,
    StoredLimit,
    WorkerRecord,
    WorkerState,
)
from jobqueue.records.duty import DutyRecord
from jobqueue.records.relay import Waiting
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.records.storage import HolderKind, SnapshotHolder, Storage
from jobqueue.records.worker import SILENT_FOR
from jobqueue.testing.clock import NOON

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
#: How long a due job waits by default before it is overdue.
OLD = timedelta(hours=1)


def depth(queue="default", name="resize", queued=1, **values):
    usual = {"capped": False, "due": queued, "oldest_due_at": NOON - MINUTE if queued else None, "in_progress": 0}
    return Depth(queue, name, queued, **usual | {"paused": False} | values)


def worker(owner="host:1:ab", **values):
    usual = {"owner": owner, "name": owner[-2:], "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 2}
    started = {"types": ("resize",), "started_at": NOON - 2 * OLD, "seen_at": NOON}
    return WorkerRecord(**usual | started | values)


def reading(*depths, workers=(), pauses=(), **values):
    return Reading(now=NOON, depths=depths, workers=workers, pauses=pauses, **values)


def waiting(**values):
    usual = {"count": 3, "oldest": NOON - SECOND, "relayed_at": None, "lost_at": None, "error": ""}
    return Waiting(**usual | values)


def ends(name="resize", completed=0, retried=0, dead_lettered=0, lost=0):
    return MetricSum(name, completed, retried, dead_lettered, 0, lost, ran=0, ran_for=0.0)


def attempts(recent, past=None, window=MINUTE):
    """Make sums: what happened within a window happened in each longer one too, and in the past."""
    sums = {one: {recent.name: recent} for one in WINDOWS if one >= window}
    earlier = past or ends(recent.name)
    added = (before + now for before, now in zip(earlier[1:], recent[1:], strict=True))
    return sums | {PAST: {recent.name: MetricSum(recent.name, *added)}}


def withheld(age=STALLED_FOR, held=MINUTE, stored=None, key="size", **use):
    """Make jobs that a limit keeps waiting."""
    limit = Limit(Scope.TYPE, "resize", LimitKind.RATE if "next_start" in use else LimitKind.CONCURRENCY, 1, key=key)
    used = LimitUse(limit, "7" if key else "", 1, running=("01J",), since=NOON - held, **use)
    author = None if stored is None else StoredLimit(limit, "the provider is slow", "ann", NOON - stored)
    return [WithheldJobs("default", "resize", NOON - age, used, author)]


def lane(name, hold=Hold.IS_DEAD):
    """Make a lane in which three jobs wait for one that holds it."""
    return LaneRecord("default", name, 3, "8", hold=LaneHold(f"dead-{name}", hold))


def usual(seconds):
    """Make the attempts of a day that ran so long each."""
    return {PAST: {"resize": ends()._replace(ran=10, ran_for=10 * seconds)}}


MANY_DUE = depth(queued=2_000, oldest_due_at=NOON - LASTING)
LONG_DUE = depth(oldest_due_at=NOON - OLD)
STOPPING = worker(state=WorkerState.STOPPING)
KILLED = worker("host:2:cd", seen_at=NOON - DEAD_AFTER - SECOND)
LAPSED = LapsedLeases(KILLED.owner, 3, NOON - 10 * SECOND)
FORGOTTEN = PauseRecord(Scope.QUEUE, "default", "why", NOON - FORGOTTEN_AFTER)
QUIET = QuietJob("7", "resize", "default", "host:1:ab", NOON - STUCK_FOR)
HOLDER = SnapshotHolder(kind=HolderKind.SESSION, name="pg_dump", pid=7, state="", since=NOON - 12 * MINUTE)
DEAD = DeadLetterCount("default", "resize", 5)
FAILED = DutyRecord(
    name="sample",
    owner="host:1:ab",
    due_at=NOON,
    held_until=NOON,
    ran_at=NOON - MINUTE,
    failure="OSError: disk full",
    failing_since=NOON - MINUTE,
)
LATE = ScheduleRecord(
    id="1", name="nightly", type="greet", rule="@daily", last_slot_at=NOON - DAY, next_at=NOON - MINUTE
)
ALL_FAILED, ALL_WELL = ends(dead_lettered=500), ends(completed=10_000)

#: What was read, and what is found: level, cause, queues, types, and where to look.
READINGS = {
    "an old snapshot": (
        reading(storage=Storage(holders=(HOLDER,), dead_rows=COSTLY_DEAD_ROWS)),
        [("WARNING", "snapshot_held", "", "queues")],
    ),
    "a large log": (reading(storage=Storage(log_size=LARGE_LOG)), [("WARNING", "log_large", "", "queues")]),
    "dead rows that nobody holds": (
        reading(storage=Storage(dead_rows=MANY_DEAD_ROWS, live_rows=MANY_DEAD_ROWS)),
        [("WARNING", "dead_rows_kept", "", "queues")],
    ),
    "dead rows beside more live ones": (
        reading(storage=Storage(dead_rows=MANY_DEAD_ROWS, live_rows=MANY_DEAD_ROWS + 1)),
        [],
    ),
    "a duty that failed": (reading(duties=[FAILED]), [("WARNING", "duty_failing", "", "workers")]),
    "a duty that failed, of a release that is gone": (reading(duties=[replace(FAILED, ran_at=NOON - DAY)]), []),
    "a late schedule": (reading(late_schedules=[LATE]), [("WARNING", "schedule_late", "", "schedules")]),
    "a schedule in trouble": (
        reading(late_schedules=[replace(LATE, trouble="its rule is wrong")]),
        [("WARNING", "schedule_in_trouble", "", "schedules")],
    ),
    "nothing": (reading(), []),
    "a deep queue": (
        reading(depth(queued=1_001, oldest_due_at=NOON - 5 * MINUTE), workers=[worker()]),
        [("WARNING", "queue_deep", "default", "queued_jobs")],
    ),
    "a deep queue behind a limit": (
        reading(MANY_DUE, workers=[worker()], withheld=withheld(LASTING, next_start=MINUTE, key="")),
        [],
    ),
    "a deep queue beside one behind a limit": (
        reading(
            MANY_DUE,
            depth(name="greet", queued=500, oldest_due_at=NOON - LASTING, capped=True),
            workers=[worker(types=("resize", "greet"))],
            withheld=withheld(LASTING, key=""),
            counts={"default": 2_501},
        ),
        [],
    ),
    "a deep queue behind a limit, of which a rule says how deep it may be": (
        reading(
            MANY_DUE,
            workers=[worker()],
            withheld=withheld(LASTING, key=""),
            rules=RuleBook(({"rule": "queue_deep", "queue": "default", "above": 1_000},)),
        ),
        [("WARNING", "queue_deep", "default", "queued_jobs")],
    ),
    "a deep queue of which a limit holds back some jobs": (
        reading(MANY_DUE, workers=[worker()], withheld=withheld(LASTING)),
        [("WARNING", "queue_deep", "default", "queued_jobs")],
    ),
    "a burst": (reading(depth(queued=1_001), workers=[worker()]), []),
    "many dead letters": (
        reading(dead_letters=[DeadLetterCount("default", "resize", 6), DeadLetterCount("mail", "resize", 5)]),
        [("ERROR", "dead_letters", "default mail", "dead_letters")],
    ),
    "too few succeed": (
        reading(attempts=attempts(ends(completed=94, dead_lettered=6), window=HOUR)),
        [("ERROR", "success_low", "", "dead_letters")],
    ),
    "enough succeed": (reading(attempts=attempts(ends(completed=95, dead_lettered=5), window=HOUR)), []),
    "too few to say how many succeed": (
        reading(attempts=attempts(ends(completed=80, dead_lettered=6), window=HOUR)),
        [],
    ),
    "slow jobs": (reading(ran={"resize": Lengths({bucket(11): 100})}), [("WARNING", "slow", "", "dashboard")]),
    "slow jobs that may be so": (
        reading(ran={"resize": Lengths({bucket(11): 100})}, own_limits={"resize": MINUTE}),
        [],
    ),
    "a critical dead letter": (
        reading(
            critical=[DeadJob("7", "resize", "default", NOON)], dead_letters=[DeadLetterCount("default", "resize", 1)]
        ),
        [("ERROR", "critical_dead", "default", "job")],
    ),
    "somebody takes it": (reading(depth(), workers=[worker()]), []),
    "nothing is due": (reading(depth(due=0, oldest_due_at=None)), []),
    "a deploy": (reading(depth(oldest_due_at=NOON - PATIENCE + SECOND)), []),
    "a restart": (reading(depth(), busy_at=NOON - MINUTE), []),
    "a restart of the only worker of a queue": (
        reading(depth("images"), workers=[worker(queues=("default",))], moving={"images"}),
        [],
    ),
    "no worker": (reading(depth(), depth("images", due=0)), [("WARNING", "no_worker", "default images", "workers")]),
    "a silent worker": (
        reading(depth(), workers=[worker(seen_at=NOON - SILENT_FOR)]),
        [("WARNING", "no_worker", "default", "workers")],
    ),
    "a killed worker that was the only one": (
        reading(lapsed=[LAPSED], workers=[KILLED]),
        [("WARNING", "no_worker", "", "workers")],
    ),
    "a killed worker": (
        reading(lapsed=[LAPSED], workers=[KILLED, worker()]),
        [("WARNING", "held_by_dead", "", "workers")],
    ),
    "a lease that a live worker is late to renew": (
        reading(lapsed=[LapsedLeases("host:1:ab", 1, NOON - MINUTE)], workers=[worker()]),
        [],
    ),
    "a worker that nobody replaced": (
        reading(workers=[worker(), worker("host:2:cd", seen_at=NOON - SILENT_FOR)]),
        [("WARNING", "worker_silent", "", "workers")],
    ),
    "a worker that nobody replaced for long": (
        reading(workers=[worker(), worker("host:2:cd", seen_at=NOON - SILENCE_WARNS_FOR)]),
        [("NOTICE", "worker_silent", "", "workers")],
    ),
    "a worker that was replaced": (
        reading(workers=[worker(started_at=NOON), worker("host:2:cd", seen_at=NOON - SILENT_FOR)]),
        [],
    ),
    "a worker that one of other queues does not replace": (
        reading(
            workers=[worker(started_at=NOON, queues=("mail",)), worker("host:2:cd", seen_at=NOON - SILENT_FOR)],
        ),
        [("WARNING", "worker_silent", "", "workers")],
    ),
    "no worker knows the type": (
        reading(depth(name="rare"), depth("images", "rare"), workers=[worker(), STOPPING]),
        [("WARNING", "type_not_served", "", "queued_jobs")],
    ),
    "no worker knows the type in one queue": (
        reading(
            depth(name="rare"),
            depth("images", "rare"),
            workers=[worker(), worker("host:2:cd", queues=("images",), types=("rare",))],
        ),
        [("WARNING", "type_not_served", "default", "queued_jobs")],
    ),
    "the workers stop": (
        reading(depth(), workers=[STOPPING, worker(types=("greet",))]),
        [("WARNING", "workers_stopping", "", "queued_jobs")],
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
        [("ERROR", "queue_full", "images default", "queued_jobs")],
    ),
    "full, as a further count says": (
        reading(depth(queued=2, capped=True), workers=[worker()], capacity=10, counts={"default": 9}),
        [("WARNING", "queue_full", "default", "queued_jobs")],
    ),
    "unknown": (
        reading(depth(), workers=[worker()], known_types={"greet"}),
        [("WARNING", "type_unknown", "", "queued_jobs")],
    ),
    "unknown, and nobody takes it": (
        reading(depth(name="old"), workers=[worker()], known_types={"resize"}),
        [("WARNING", "type_not_served", "", "queued_jobs")],
    ),
    "paused": (
        reading(pauses=[PauseRecord(Scope.QUEUE, "images", "why", NOON), PauseRecord(Scope.TYPE, "greet", "", NOON)]),
        [("NOTICE", "paused", "images", "queues")],
    ),
    "paused for long, and nothing waits": (reading(pauses=[FORGOTTEN]), [("NOTICE", "paused", "default", "queues")]),
    "paused and forgotten": (
        reading(depth(paused=True), workers=[worker()], pauses=[FORGOTTEN]),
        [("WARNING", "pause_forgotten", "default", "queues")],
    ),
    "overdue": (
        reading(depth(oldest_due_at=NOON - OLD), workers=[worker()]),
        [("WARNING", "overdue", "default", "queued_jobs")],
    ),
    "overdue, and others are done": (
        reading(depth(oldest_due_at=NOON - OLD), workers=[worker()], moving={"default"}),
        [("WARNING", "overdue", "default", "queued_jobs")],
    ),
    "stalled": (
        reading(depth(oldest_due_at=NOON - STALLED_FOR), workers=[worker()], moving={"images"}),
        [("WARNING", "queue_stalled", "default", "queued_jobs")],
    ),
    "nothing ends, and nothing waits for long": (reading(depth(), workers=[worker()], moving=set()), []),
    "paused for some time": (reading(depth(oldest_due_at=NOON - OLD, paused=True), workers=[worker()]), []),
    "a stopped lane": (
        reading(LONG_DUE, workers=[worker()], moving={"images"}, lanes=[lane("a"), lane("b")]),
        [("WARNING", "lane_stopped", "default", "dead_letters")],
    ),
    "a stopped lane beside one that goes on": (
        reading(LONG_DUE, workers=[worker()], moving={"default"}, lanes=[lane("a"), lane("b", Hold.RUNS)]),
        [("WARNING", "lane_stopped", "default", "job"), ("WARNING", "overdue", "default", "queued_jobs")],
    ),
    "a lane that waits for a job that runs": (
        reading(LONG_DUE, workers=[worker()], moving={"images"}, lanes=[lane("a", Hold.RUNS)]),
        [("WARNING", "queue_stalled", "default", "queued_jobs")],
    ),
    "all fail": (
        reading(attempts=attempts(ALL_FAILED, ALL_WELL), dead_letters=[DEAD]),
        [("ERROR", "failing", "", "dead_letters")],
    ),
    "all fail, and have done so for a day": (
        reading(attempts=attempts(ALL_FAILED, ends(dead_lettered=5_000))),
        [("ERROR", "failing", "", "dashboard")],
    ),
    "more fail than usual": (
        reading(attempts=attempts(ends(completed=10, retried=30), ALL_WELL)),
        [("WARNING", "failing", "", "dashboard")],
    ),
    "as many fail as usual": (
        reading(attempts=attempts(ends(completed=10, retried=30), ends(completed=1_000, retried=3_000))),
        [],
    ),
    "some fail": (reading(attempts=attempts(ends(completed=90, retried=10), ALL_WELL)), []),
    "too few to tell": (reading(attempts=attempts(ends(retried=LEAST_ATTEMPTS - 1), ALL_WELL)), []),
    "new dead letters": (
        reading(attempts=attempts(ends(completed=90, dead_lettered=5), ALL_WELL), dead_letters=[DEAD]),
        [("WARNING", "died_lately", "", "dead_letters")],
    ),
    "as many dead letters as usual": (
        reading(
            attempts=attempts(ends(completed=90, dead_lettered=5), ends(completed=900, dead_lettered=50)),
            dead_letters=[DEAD],
        ),
        [("NOTICE", "dead_letters", "default", "dead_letters")],
    ),
    "new dead letters that were retried": (
        reading(attempts=attempts(ends(completed=90, dead_lettered=5), ALL_WELL)),
        [],
    ),
    "old dead letters": (
        reading(dead_letters=[DEAD, DeadLetterCount("mail", "resize", 1)]),
        [("NOTICE", "dead_letters", "default mail", "dead_letters")],
    ),
    "stuck": (reading(workers=[worker()], quiet=[QUIET]), [("WARNING", "progress_stuck", "default", "job")]),
    "two are stuck": (
        reading(workers=[worker()], quiet=[QUIET, QUIET._replace(id="8")]),
        [("WARNING", "progress_stuck", "default", "running_jobs")],
    ),
    "a flood": (
        reading(depth(), workers=[worker()], tenants={("default", "resize"): {"acme": 45, "other": 5}}),
        [("WARNING", "tenant_flood", "default", "queued_jobs")],
    ),
    "a flood of a fair queue": (
        reading(
            depth(),
            workers=[worker()],
            tenants={("default", "resize"): {"acme": 45, "other": 5}},
            options={"default": QueueOptions(fair="tenant")},
        ),
        [],
    ),
    "no flood": (
        reading(depth(), workers=[worker()], tenants={("default", "resize"): {"acme": 30, "other": 20}}),
        [],
    ),
    "no tenants": (reading(depth(), workers=[worker()], tenants={("default", "resize"): {"": 50}}), []),
    "a limit that hangs": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(held=STALLED_FOR), moving=()),
        [("WARNING", "limit_used_up", "default", "running_jobs")],
    ),
    "a limit of jobs that run for long": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(held=STALLED_FOR), attempts=usual(600), moving=()),
        [],
    ),
    "a limit with a backlog": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(age=OLD)),
        [("NOTICE", "limit_used_up", "default", "queues")],
    ),
    "a limit with a backlog, just set": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(age=OLD, stored=MINUTE)),
        [("NOTICE", "limit_used_up", "default", "queues")],
    ),
    "a forgotten limit": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(age=OLD, stored=limits.FORGOTTEN_AFTER)),
        [("WARNING", "limit_used_up", "default", "queues")],
    ),
    "a daily rate in code": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(next_start=limits.FAR)),
        [("NOTICE", "limit_used_up", "default", "queues")],
    ),
    "a daily rate that was set": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(next_start=limits.FAR, stored=MINUTE)),
        [("WARNING", "limit_used_up", "default", "queues")],
    ),
    "a rate that goes on soon": (
        reading(LONG_DUE, workers=[worker()], withheld=withheld(next_start=MINUTE, stored=DAY)),
        [],
    ),
    "limits without a worker": (
        reading(depth(), withheld=withheld(held=OLD)),
        [("WARNING", "no_worker", "default", "workers")],
    ),
    "this clock": (reading(skew=-CLOCK_TOLERANCE), [("WARNING", "clocks_apart", "", "workers")]),
    "a worker's clock": (
        reading(workers=[worker(started_at=NOON + CLOCK_TOLERANCE)]),
        [("WARNING", "clocks_apart", "", "workers")],
    ),
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


def test_a_limit_says_what_uses_it_up_and_who_set_it():
    def said(**values):
        (one,) = findings(reading(LONG_DUE, workers=[worker()], withheld=withheld(**values)))
        return sentence(one, WORDING, NOON)

    assert said(held=STALLED_FOR) == (
        "The limit of 1 at once for the type resize with size 7 has let nothing start for 15m, and 1 job is due. "
        "These jobs use it up: 01J."
    )
    assert said(age=OLD, stored=DAY) == (
        "The limit of 1 at once for the type resize with size 7 is used up, and 1 job is due, the oldest for 1h. "
        "ann set the limit 1d ago: the provider is slow."
    )


def test_a_used_up_limit_is_one_problem_whatever_waits_for_it():
    def key(*depths, value="7", number=1):
        found = withheld(held=STALLED_FOR)[0]
        use = replace(found.use, value=value, limit=replace(found.use.limit, number=number), used=number)
        waiting = [replace(found, queue=row.queue, use=use) for row in depths]
        (one,) = findings(reading(*depths, workers=[worker()], withheld=waiting))
        return one.key

    mail = depth("mail", oldest_due_at=NOON - OLD)
    assert key(LONG_DUE) == key(mail, LONG_DUE) == key(LONG_DUE, number=2)
    assert key(LONG_DUE) != key(LONG_DUE, value="8")


def test_one_cause_is_one_line_however_many_it_concerns():
    seen = reading(*(depth(f"queue-{number:02}") for number in range(20)), workers=[worker(queues=("other",))])
    (one,) = findings(seen)
    assert (one.cause, len(one.parts), one.jobs) == (Cause.QUEUE_NOT_SERVED, 20, 20)
    assert text(one, NOON) == (
        "No live worker serves 20 queues, and 20 jobs wait in them: queue-00, queue-01, queue-02 and 17 more. "
        "Start a worker for the queue with manage.py runworker --queue."
    )
    assert sentence(one.parts[0], WORDING, NOON) == "No live worker serves the queue queue-00: 1 job waits."


def test_notices_are_no_alarm():
    assert level_of(findings(reading(dead_letters=[DEAD]))) is Level.OK
    assert level_of(findings(reading(depth(), dead_letters=[DEAD]))) is Level.WARNING


def test_a_failing_type_says_how_it_fails():
    (one,) = findings(reading(attempts=attempts(ALL_FAILED, ALL_WELL), dead_letters=[DEAD]))
    assert one.failures == Failures(500, 500, MINUTE, 0.0)
    assert sentence(one, WORDING, NOON) == (
        "Jobs of type resize fail: 500 of 500 attempts in 1m, usually 0 %. 5 dead letters wait."
    )


def test_a_type_that_fails_no_longer_is_well():
    sums = attempts(ends(completed=500), ALL_WELL)
    earlier = {LATELY: {"resize": ends(completed=500, dead_lettered=2_000)}}
    assert findings(reading(attempts=sums | earlier)) == []
    recent = {MINUTE: {"resize": ends(completed=5)}}  # too few to tell
    assert [one.cause for one in findings(reading(attempts=sums | earlier | recent))] == []


def test_a_type_of_few_attempts_is_judged_over_a_longer_time():
    seen = reading(attempts=attempts(ends(retried=30), ALL_WELL, window=LATELY))
    assert [one.failures.window for one in findings(seen)] == [LATELY]
    assert findings(seen)[0].failures.share >= HOPELESS


def test_a_reading_is_narrowed_to_a_queue_or_a_type():
    seen = reading(
        depth("mail", "greet"),
        depth("images", "rare"),
        workers=[worker()],
        pauses=[FORGOTTEN],
        dead_letters=[DEAD, DeadLetterCount("mail", "greet", 1)],
        attempts=attempts(ALL_FAILED),
        quiet=[QUIET],
        tenants={("mail", "greet"): {"acme": 50}},
    )
    every = {one.cause for one in findings(seen)}
    narrow = {one.cause for one in findings(seen.narrowed("mail", "greet"))}
    assert Cause.FAILING in every
    assert narrow == {Cause.TYPE_NOT_SERVED, Cause.TENANT_FLOOD, Cause.DEAD_LETTERS}


def test_a_count_that_stopped_says_so():
    (one,) = findings(reading(depth(queued=10_000, capped=True), depth("images")))
    assert (one.jobs, one.is_capped) == (10_001, True)
    (one,) = findings(reading(depth(), in_part=True))
    assert one.is_capped


def test_the_commands_have_a_sentence_for_each_finding_and_for_several():
    found = [one for seen, _wanted in READINGS.values() for one in findings(seen)]
    several = [replace(one, parts=(one, one), types=one.types or ("a",), queues=one.queues or ("a",)) for one in found]
    sentences = [text(one, NOON) for one in (*found, *several)]
    assert len(set(sentences)) > len(Cause)
    assert all(one.count("\n") == 0 and one.endswith((".", "?")) for one in sentences)
    assert {one.cause for one in found if not advice(one)} == {Cause.PAUSED}
