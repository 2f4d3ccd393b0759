"""The verbs: what an operator may do to jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.http import HttpRequest
from django.utils.translation import gettext

from jobqueue import control
from jobqueue.models import Job
from jobqueue.orders import verb_text
from jobqueue.orders.instruction import Instruction
from jobqueue.orders.verb_text import VerbText
from jobqueue.records import Filter, Handled
from jobqueue.states import JobStatus, Move, sources


def _nothing_to_skip(_job: Job, _instruction: Instruction, _now: datetime) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing that an operator may do to jobs."""

    name: str
    permission: str
    text: VerbText
    #: The statuses that it does anything to.
    eligible_statuses: frozenset[JobStatus]
    #: Those it takes where a filter names no status.
    default_statuses: frozenset[JobStatus]
    #: Carries an instruction out on the jobs with these ids. Retried jobs become due after the given time.
    act: Callable[[Sequence[str], Instruction, timedelta], Handled]
    #: Says why an instruction would change nothing about an eligible job.
    why_skip: Callable[[Job, Instruction, datetime], str | None] = _nothing_to_skip
    #: Whether a job's own page asks first. Lists always ask.
    asks_first: bool = True
    #: Whether the jobs are gone afterwards.
    deletes: bool = False

    def is_allowed(self, request: HttpRequest) -> bool:
        """Return whether the user has the permission."""
        return request.user.has_perm(self.permission)

    def accepts(self, status: str) -> bool:
        """Return whether it does anything to a job of that status."""
        return JobStatus(status) in self.eligible_statuses

    def statuses_in(self, wanted: Filter) -> frozenset[JobStatus]:
        """Return the statuses of a filter that it takes."""
        return (wanted.statuses & self.eligible_statuses) if wanted.statuses else self.default_statuses

    def narrowed(self, wanted: Filter) -> Filter:
        """Narrow a filter to the statuses that the verb takes. There must be at least one."""
        return replace(wanted, statuses=self.statuses_in(wanted))

    def log_message(self, instruction: Instruction) -> str:
        """Word an order for the log."""
        values = {"at": instruction.scheduled_at, "priority": instruction.priority, "queue": instruction.queue}
        entry = str(self.text.log_entry) % {name: "" if value is None else f"{value}" for name, value in values.items()}
        return f"{entry}: {instruction.why}" if instruction.why else f"{entry}."


def _retry(ids: Sequence[str], instruction: Instruction, after: timedelta) -> Handled:
    return control.retry(ids, every=instruction.every, after=after)


def _amend(ids: Sequence[str], instruction: Instruction, _after: timedelta) -> Handled:
    return control.amend(ids, instruction.amendment)


def _cancel(ids: Sequence[str], _instruction: Instruction, _after: timedelta) -> Handled:
    return control.cancel(ids)


def _purge(ids: Sequence[str], _instruction: Instruction, _after: timedelta) -> Handled:
    return control.purge(ids)


def _is_due(job: Job, _instruction: Instruction, now: datetime) -> str | None:
    # Making it due now would put it behind all jobs that became due since.
    is_due = job.status == JobStatus.QUEUED and job.scheduled_at <= now
    return gettext("is already due") if is_due else None


def _has_time(job: Job, instruction: Instruction, _now: datetime) -> str | None:
    return gettext("is already scheduled for that time") if job.scheduled_at == instruction.scheduled_at else None


def _has_priority(job: Job, instruction: Instruction, _now: datetime) -> str | None:
    return gettext("already has that priority") if job.priority == instruction.priority else None


def _has_queue(job: Job, instruction: Instruction, _now: datetime) -> str | None:
    return gettext("is already in that queue") if job.queue == instruction.queue else None


def _was_asked_to_stop(job: Job, _instruction: Instruction, _now: datetime) -> str | None:
    was_asked = job.status == JobStatus.IN_PROGRESS and job.cancel_requested_at is not None
    return gettext("was already asked to stop") if was_asked else None


def _amending(
    name: str,
    permission: str,
    text: VerbText,
    why_skip: Callable[[Job, Instruction, datetime], str | None],
    *,
    asks_first: bool = True,
) -> Verb:
    """Make a verb that changes queued jobs."""
    return Verb(
        name=name,
        permission=permission,
        text=text,
        eligible_statuses=control.AMENDED,
        default_statuses=control.AMENDED,
        act=_amend,
        why_skip=why_skip,
        asks_first=asks_first,
    )


_ALL = (
    Verb(
        name="retry",
        permission="jobqueue.retry_job",
        text=verb_text.RETRY,
        eligible_statuses=sources(Move.REVIVE),
        default_statuses=control.RETRIED,
        act=_retry,
        asks_first=False,
    ),
    _amending("run_now", "jobqueue.run_job", verb_text.RUN_NOW, _is_due, asks_first=False),
    _amending("reschedule", "jobqueue.reschedule_job", verb_text.RESCHEDULE, _has_time),
    _amending("prioritise", "jobqueue.prioritise_job", verb_text.PRIORITISE, _has_priority),
    _amending("move", "jobqueue.move_job", verb_text.MOVE, _has_queue),
    Verb(
        name="cancel",
        permission="jobqueue.cancel_job",
        text=verb_text.CANCEL,
        eligible_statuses=sources(Move.CANCEL),
        default_statuses=control.CANCELLED,
        act=_cancel,
        why_skip=_was_asked_to_stop,
        asks_first=False,
    ),
    Verb(
        name="purge",
        permission="jobqueue.purge_job",
        text=verb_text.PURGE,
        eligible_statuses=frozenset(JobStatus) - {JobStatus.IN_PROGRESS},
        default_statuses=control.PURGED,
        act=_purge,
        deletes=True,
    ),
)
VERBS = {verb.name: verb for verb in _ALL}
