"""Why a job is not running: from what was read of it, its queue and the workers, in words and with what to do."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from jobqueue.cli.values import ago, counted, length, moment
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import JobRecord, Pause, Scope, WorkerRecord, WorkerState
from jobqueue.states import JobStatus

CAP = 10_000


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: a stable code, the sentence, what to type, and whether the job waits for a person."""

    code: str
    text: str
    command: str | None = None
    needs_you: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What was read at one moment."""

    now: datetime
    job: JobRecord
    pauses: Sequence[Pause]
    workers: Sequence[WorkerRecord]
    known_types: Set[str]
    ahead: int

    @property
    def alive(self) -> list[WorkerRecord]:
        """The workers heard of lately."""
        return [one for one in self.workers if one.is_alive(self.now)]


def reasons(scene: Scene) -> list[Reason]:
    """Say why, the reason that weighs most first."""
    match scene.job.status:
        case JobStatus.IN_PROGRESS:
            return [_running(scene)]
        case JobStatus.COMPLETED:
            return [Reason("completed", f"It completed {_when(scene.job.completed_at, scene)}.")]
        case JobStatus.FAILED:
            return [_failed(scene)]
        case JobStatus.DEAD_LETTER:
            return [_dead(scene)]
        case _:
            found = [*_pauses(scene), *_too_early(scene), *_nobody(scene)]
            return found or [_its_turn(scene)]


def _running(scene: Scene) -> Reason:
    job, now = scene.job, scene.now
    attempt = f"attempt {job.attempts} of {job.max_retries}"
    if job.lease_until is not None and job.lease_until < now:
        text = f"Its worker {job.lease_owner} was lost: the lease of {attempt} ran out {ago(job.lease_until, now)}."
        if scene.alive:
            return Reason("lease_expired", f"{text} A live worker takes it back within its next sweep.")
        return Reason("lease_expired", f"{text} No worker is up to take it back.", "manage.py runworker", True)
    asked = "" if job.cancel_requested_at is None else f" It was asked to stop {ago(job.cancel_requested_at, now)}."
    return Reason(
        "running", f"It is running: {attempt}, on {job.lease_owner}, since {_when(job.started_at, scene)}.{asked}"
    )


def _failed(scene: Scene) -> Reason:
    job = scene.job
    why = {"cancelled": "It was cancelled", "expired": "It expired before it ran"}.get(
        job.end_reason or "", f"It was stopped ({job.end_reason or 'no reason is known'})"
    )
    return Reason("failed", f"{why}, {_when(job.completed_at, scene)}.{_last_error(job)}", _retry(job), True)


def _dead(scene: Scene) -> Reason:
    job = scene.job
    text = f"It is a dead letter since {_when(job.completed_at, scene)}, after {counted(job.attempts, 'attempt')}"
    ended = f" ({job.end_reason})" if job.end_reason else ""
    return Reason("dead_letter", f"{text}{ended}.{_last_error(job)}", _retry(job), True)


def _pauses(scene: Scene) -> list[Reason]:
    names = {Scope.QUEUE: scene.job.queue, Scope.TYPE: scene.job.type}
    return [
        Reason(
            "paused",
            f"The {one.scope} {one.name} is paused since {_when(one.paused_at, scene)}"
            + (f": {one.reason}." if one.reason else "."),
            f"manage.py jobqueue resume --{one.scope} {one.name}",
            True,
        )
        for one in scene.pauses
        if names[one.scope] == one.name
    ]


def _too_early(scene: Scene) -> list[Reason]:
    job, now = scene.job, scene.now
    if job.scheduled_at <= now:
        return []
    left = f"until {moment(job.scheduled_at)}, for {length(job.scheduled_at - now)}"
    if job.error is None:
        return [Reason("scheduled", f"It is scheduled for later: it waits {left}.")]
    attempts = f"{counted(job.attempts, 'attempt')} of {job.max_retries}"
    return [Reason("waiting_for_retry", f"It waits for its next attempt {left}, after {attempts}.{_last_error(job)}")]


def _nobody(scene: Scene) -> list[Reason]:
    """Say that no worker takes such jobs; each step asks fewer workers than the one before."""
    job = scene.job
    start = f"manage.py runworker --queue {job.queue}"
    if not scene.alive:
        silent = f"; {counted(len(scene.workers), 'worker')} fell silent" if scene.workers else ""
        return [Reason("no_worker", f"No worker is up{silent}.", "manage.py runworker", True)]
    serving = [one for one in scene.alive if one.queues is None or job.queue in one.queues]
    if not serving:
        up = f"{counted(len(scene.alive), 'worker')} up, and none serves the queue {job.queue}"
        return [Reason("queue_not_served", f"There {'is' if len(scene.alive) == 1 else 'are'} {up}.", start, True)]
    knowing = [one for one in serving if job.type in one.types]
    if not knowing:
        ours = "" if job.type in scene.known_types else ", and this release has no handler for it either"
        return [Reason("type_not_served", f"No live worker of its queue knows the type {job.type}{ours}.", None, True)]
    taking = [one for one in knowing if one.state is WorkerState.RUNNING]
    if not taking:
        return [Reason("workers_stopping", "The workers that could run it are stopping.", start, True)]
    return []


def _its_turn(scene: Scene) -> Reason:
    job = scene.job
    able = [one for one in scene.alive if (one.queues is None or job.queue in one.queues) and job.type in one.types]
    slots, busy = sum(one.slots for one in able), sum(one.busy for one in able)
    more = "or more " if scene.ahead >= CAP else ""
    behind = f", behind {scene.ahead:,} {more}due jobs that come first" if scene.ahead else ""
    if busy >= slots:
        return Reason("slots_busy", f"It is due, and all {slots} slots that could run it are busy{behind}.")
    if scene.ahead:
        return Reason("behind_others", f"It is due{behind}.")
    return Reason("next", "It is due, and the next free slot takes it.")


def _retry(job: JobRecord) -> str:
    return f"manage.py jobqueue retry {job.id}"


def _last_error(job: JobRecord) -> str:
    if not job.error:
        return ""
    error = " ".join(redact_text(job.error, secret_values(job.payload)).split())
    return f" Its last error: {error if len(error) <= 300 else error[:299] + '…'}"


def _when(value: datetime | None, scene: Scene) -> str:
    return "at an unknown time" if value is None else f"{moment(value)} ({ago(value, scene.now)})"
