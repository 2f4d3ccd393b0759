"""The jobs of due slots. Any number of workers may do this at the same time."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from jobqueue import tracing
from jobqueue.backends.base import Backend
from jobqueue.errors import InvalidOption, JobQueueError, PayloadInvalid, PayloadTooNew
from jobqueue.handlers.lanes import with_all_keys
from jobqueue.handlers.registry import JobType, registry
from jobqueue.ids import new_id
from jobqueue.policy.schedules.plan import delay_of, plan
from jobqueue.policy.schedules.rule import read_rule
from jobqueue.records import Draft
from jobqueue.records.outcome import MESSAGE_LIMIT, storable
from jobqueue.records.schedule import DueSchedules, Firing, Overlap, ScheduleRecord
from jobqueue.schedules.said import job_options

logger = logging.getLogger("jobqueue")

#: How long a schedule rests if its type doesn't take its payload, or a limit's key fails. A deployment may mend it.
_REST = timedelta(minutes=1)
#: How soon to look again whether the earlier job of a schedule has ended.
_AGAIN = timedelta(seconds=1)
#: After so many jobs, the other schedules wait for the next turn, because a transaction may hold SQLite's lock.
_MOST_JOBS = 1_000


class LimitKeyFailed(JobQueueError):
    """The key of a limit or lane can't be computed for a job of a schedule."""


def fire_due(backend: Backend, limit: int = 100) -> tuple[DueSchedules, tuple[str, ...]]:
    """Store jobs for the due slots of at most ``limit`` schedules. Return what was due, and the ids of the jobs.

    ``next_at`` of what was due counts the slots after these.
    """
    due = backend.schedules.due(registry.names, limit)
    firings, jobs = list[Firing](), 0
    for schedule in due.schedules:
        if jobs >= _MOST_JOBS:
            due = replace(due, is_partial=True)
            break
        if (one := _firing(schedule, due.now)) is not None:
            firings.append(one)
            jobs += len(one.drafts)
    if not firings:
        return replace(due, is_partial=False), ()
    following = [one.next_at for one in firings if one.next_at] + ([due.next_at] if due.next_at else [])
    due = replace(due, next_at=min(following, default=None))
    try:
        return due, backend.schedules.fire(firings)
    except Exception as error:
        if not backend.lies_in_row(error):
            raise
    return due, tuple(job_id for one in firings for job_id in _fire_alone(backend, one))


def _fire_alone(backend: Backend, one: Firing) -> tuple[str, ...]:
    """Fire one schedule of a batch that the database refused. If it is the cause, it is disabled."""
    try:
        return backend.schedules.fire([one])
    except Exception as error:
        if not backend.lies_in_row(error):
            raise
        why = f"The database refuses its jobs: {type(error).__name__}."
        return backend.schedules.fire([_troubled(one.schedule, why, None)])


def _firing(schedule: ScheduleRecord, now: datetime) -> Firing | None:
    """Return what to store, or ``None`` if this release can't tell."""
    try:
        kind = registry.get(schedule.type)
        rule = read_rule(schedule.rule, schedule.zone, schedule.start_at)
        kind.payload.load(schedule.payload, schedule.payload_version)
        planned = plan(schedule, rule, now)
        drafts = tuple((slot, draft_of(schedule, kind, slot)) for slot in planned.slots)
    except PayloadTooNew:
        return None  # a worker of the newer release fires it
    except (PayloadInvalid, LimitKeyFailed) as error:
        return _troubled(schedule, str(error), now + _REST)
    except InvalidOption as error:
        return _troubled(schedule, str(error), None)
    except Exception as error:  # another program may have written anything
        return _troubled(schedule, f"Its row can't be evaluated: {type(error).__name__}: {error}", None)
    return Firing(
        schedule=schedule,
        drafts=drafts,
        last_slot_at=planned.last_slot_at,
        next_at=planned.next_at,
        missed_at=planned.missed_at,
        again_at=now + _AGAIN if schedule.overlap is Overlap.QUEUE else None,
    )


def _troubled(schedule: ScheduleRecord, why: str, next_at: datetime | None) -> Firing:
    """Return a firing that stores no job. The slots stay, so they are missed once the schedule is mended."""
    if why != schedule.trouble:
        logger.error("The schedule %s makes no jobs: %s", schedule.name, why)
    return Firing(
        schedule=schedule, last_slot_at=schedule.last_slot_at, next_at=next_at, trouble=storable(why, MESSAGE_LIMIT)
    )


def draft_of(schedule: ScheduleRecord, kind: JobType, slot: datetime | None = None) -> Draft:
    """Return the draft of a job for a slot, or for none.

    Raises InvalidOption for options that don't fit, and LimitKeyFailed.
    """
    options, expires_after = job_options(kind, schedule.options)
    due_at = None if slot is None else slot + delay_of(schedule)
    key = options.unique_key if schedule.overlap is Overlap.ALLOW else f"schedule:{schedule.id}"
    draft = Draft(
        id=new_id(),
        type=schedule.type,
        payload=schedule.payload,
        payload_version=schedule.payload_version,
        queue=options.queue,
        priority=options.priority,
        max_retries=options.max_retries,
        timeout=None if options.timeout is None else timedelta(seconds=_seconds(options.timeout)),
        scheduled_at=due_at,
        expires_at=None if expires_after is None or slot is None else slot + expires_after,
        unique_key=key,
        tenant=options.tenant,
        workspace=options.workspace,
        parallel=bool(options.parallel),
    )
    if slot is not None and tracing.in_use():
        longest = (draft.timeout or kind.timeout) * draft.max_retries
        draft = replace(draft, context=tracing.context_of_slot(schedule, longest))
    return _with_keys(schedule, kind, draft)


def _with_keys(schedule: ScheduleRecord, kind: JobType, draft: Draft) -> Draft:
    """Return a draft with the keys of its limits, and of its fair queue or lane.

    A key function is code of the project, which may raise anything.
    """
    try:
        return with_all_keys(kind, draft)
    except PayloadInvalid:
        raise
    except Exception as error:
        raise LimitKeyFailed(
            f"The key of a limit or lane of {draft.type!r} can't be computed: {type(error).__name__}: {error}"
        ) from error


def _seconds(length: timedelta | float) -> float:
    return length.total_seconds() if isinstance(length, timedelta) else length
