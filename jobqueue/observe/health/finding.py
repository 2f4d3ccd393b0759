"""Findings: each has a level, a cause, the things that it concerns, and the page that shows more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from hashlib import blake2b

from jobqueue.records import LimitUse, StoredLimit


class Level(IntEnum):
    """The level of a finding; a higher number is worse. A notice, such as a pause, may be intended and is no alarm."""

    OK = 0
    NOTICE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """Return the level as it is written."""
        return self.name.lower()


class Cause(StrEnum):
    """The cause of a finding, the gravest first. The values are stable codes.

    The codes about workers are also those of ``observe.reasons``.
    """

    CRITICAL_DEAD = "critical_dead"
    NO_WORKER = "no_worker"
    RELAY_LOST = "relay_lost"
    RELAY_IDLE = "relay_idle"
    JOB_LEFT_OUT = "job_left_out"
    QUEUE_FULL = "queue_full"
    FAILING = "failing"
    SUCCESS_LOW = "success_low"
    QUEUE_NOT_SERVED = "queue_not_served"
    TYPE_NOT_SERVED = "type_not_served"
    WORKERS_STOPPING = "workers_stopping"
    HELD_BY_DEAD = "held_by_dead"
    WORKER_SILENT = "worker_silent"
    QUEUE_STALLED = "queue_stalled"
    LANE_STOPPED = "lane_stopped"
    QUEUE_DEEP = "queue_deep"
    PAUSE_FORGOTTEN = "pause_forgotten"
    PROGRESS_STUCK = "progress_stuck"
    LIMIT_USED_UP = "limit_used_up"
    TENANT_FLOOD = "tenant_flood"
    DIED_LATELY = "died_lately"
    SNAPSHOT_HELD = "snapshot_held"
    DEAD_ROWS_KEPT = "dead_rows_kept"
    LOG_LARGE = "log_large"
    DUTY_FAILING = "duty_failing"
    SCHEDULE_LATE = "schedule_late"
    SCHEDULE_IN_TROUBLE = "schedule_in_trouble"
    CLOCKS_APART = "clocks_apart"
    TYPE_UNKNOWN = "type_unknown"
    OVERDUE = "overdue"
    SLOW = "slow"
    PAUSED = "paused"
    DEAD_LETTERS = "dead_letters"


class Place(StrEnum):
    """The page that shows more. A list of jobs is narrowed to the finding's queues, types and tenant."""

    QUEUED_JOBS = "queued_jobs"
    RUNNING_JOBS = "running_jobs"
    DEAD_LETTERS = "dead_letters"
    JOB = "job"
    WORKERS = "workers"
    QUEUES = "queues"
    DASHBOARD = "dashboard"
    SCHEDULES = "schedules"


@dataclass(frozen=True, slots=True)
class Failures:
    """How many of the attempts in a window failed, and which share usually does."""

    failed: int
    attempts: int
    window: timedelta
    usual: float

    @property
    def share(self) -> float:
        """Return the share of attempts that failed."""
        return self.failed / self.attempts if self.attempts else 0.0


NO_FAILURES = Failures(0, 0, timedelta(0), 0.0)


@dataclass(frozen=True, slots=True)
class WithheldJobs:
    """Due jobs of a queue and type that one limit keeps from starting, the first of them due since ``since``.

    ``stored`` is set if an operator set the limit.
    """

    queue: str
    type: str
    since: datetime
    use: LimitUse
    stored: StoredLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem, or several of one cause, which ``parts`` lists.

    ``jobs`` counts its jobs; if ``is_capped``, there are more. ``due`` and ``held`` count those that are due and those
    that a dead worker holds, ``dead`` the dead letters of its types. ``since`` is when it began, if
    known. ``length`` is how long it has lasted, or how far clocks are apart. ``reason`` comes from an operator, a
    worker or the database. ``limit`` is the limit that keeps jobs from starting. ``measured`` and ``threshold`` are set
    if a rule compares them. ``scope`` has the queue and type that are judged together, or the place of a limit and the
    value of its key.
    """

    level: Level
    cause: Cause
    place: Place
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    job: str = ""
    worker: str = ""
    duty: str = ""
    schedule: str = ""
    tenant: str = ""
    scope: tuple[str, ...] = ()
    jobs: int = 0
    due: int = 0
    held: int = 0
    dead: int = 0
    dead_rows: int = 0
    is_capped: bool = False
    capacity: int = 0
    log_size: int = 0
    share: float = 0.0
    failures: Failures = NO_FAILURES
    since: datetime | None = None
    length: timedelta = timedelta(0)
    reason: str = ""
    limit: WithheldJobs | None = None
    measured: float | None = None
    threshold: float | None = None
    parts: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """Return what names this problem, and stays the same while its numbers change."""
        names = [getattr(self, field) for field in _SUBJECT.get(self.cause, _ANY_SUBJECT)]
        text = "\0".join("\1".join(one) if isinstance(one, tuple) else one for one in names)
        if not text.strip("\0\1"):
            return self.cause.value
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{self.cause.value}:{digest}"


#: The fields that name the problem of a cause. Others change while it lasts: the types that wait in a queue, or the
#: worker that reports a job.
_SUBJECT: dict[Cause, tuple[str, ...]] = {
    Cause.NO_WORKER: (),
    Cause.RELAY_LOST: (),
    Cause.RELAY_IDLE: (),
    Cause.SNAPSHOT_HELD: (),
    Cause.DEAD_ROWS_KEPT: (),
    Cause.LOG_LARGE: (),
    Cause.CRITICAL_DEAD: ("job",),
    Cause.JOB_LEFT_OUT: ("job",),
    Cause.PROGRESS_STUCK: ("job",),
    Cause.LANE_STOPPED: ("job",),
    Cause.QUEUE_FULL: ("queues",),
    Cause.QUEUE_NOT_SERVED: ("queues",),
    Cause.QUEUE_STALLED: ("queues",),
    Cause.FAILING: ("types",),
    Cause.DIED_LATELY: ("types",),
    Cause.SUCCESS_LOW: ("types",),
    Cause.SLOW: ("types",),
    Cause.TYPE_UNKNOWN: ("types",),
    Cause.WORKERS_STOPPING: ("types",),
    Cause.SCHEDULE_LATE: ("schedule",),
    Cause.SCHEDULE_IN_TROUBLE: ("schedule",),
    Cause.QUEUE_DEEP: ("scope",),
    Cause.DEAD_LETTERS: ("scope",),
    Cause.LIMIT_USED_UP: ("scope",),
}
_ANY_SUBJECT = ("queues", "types", "job", "worker", "duty", "schedule", "tenant")


#: The page that shows several jobs, where one has a page of its own.
_OF_ALL = {
    Cause.JOB_LEFT_OUT: Place.WORKERS,
    Cause.PROGRESS_STUCK: Place.RUNNING_JOBS,
    Cause.LANE_STOPPED: Place.DEAD_LETTERS,
    Cause.CRITICAL_DEAD: Place.DEAD_LETTERS,
}


def summed_up(parts: tuple[Finding, ...]) -> Finding:
    """Make one finding of several with the same cause. The worst comes first."""
    worst = sorted(parts, key=lambda one: -one.level)
    if len(worst) == 1:
        return worst[0]
    moments = [one.since for one in worst if one.since]
    return Finding(
        level=worst[0].level,
        cause=worst[0].cause,
        place=_OF_ALL.get(worst[0].cause, worst[0].place),
        queues=_names(worst, "queues"),
        types=_names(worst, "types"),
        jobs=sum(one.jobs for one in worst),
        due=sum(one.due for one in worst),
        held=sum(one.held for one in worst),
        dead=sum(one.dead for one in worst),
        is_capped=any(one.is_capped for one in worst),
        since=min(moments, default=None),
        length=max(one.length for one in worst),
        parts=tuple(worst),
    )


def _names(parts: list[Finding], kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in parts for name in getattr(one, kind)))
