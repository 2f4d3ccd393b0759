"""The verbs: what each takes, who may use it, what it does, and its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from jobqueue import control
from jobqueue.models import Job
from jobqueue.orders.order import Order
from jobqueue.records import Filter, Handled
from jobqueue.states import JobStatus, Move, sources

_Work = Callable[[Sequence[str], Order, timedelta], Handled]
_Idle = Callable[[Job, Order, datetime], "str | None"]
#: By how many. Not ``ngettext_lazy``: each of those makes two classes, 34 kB that every worker would carry.
_Worded = Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing an operator may do to jobs.

    It fits jobs of ``statuses``; of what a filter lets through that names none, it takes the ``usual`` ones. ``asked``,
    ``will`` and ``done`` say it of so many jobs, as a question, before and afterwards; ``others`` and ``spared`` say
    why it leaves jobs of other statuses alone. One that is ``plain`` needs no question on a job's own page.
    """

    name: str
    label: Any
    permission: str
    statuses: frozenset[JobStatus]
    usual: frozenset[JobStatus]
    work: _Work
    idle: _Idle
    asked: _Worded
    will: _Worded
    done: _Worded
    others: Any
    logged: Any
    spared: Any = ""
    plain: bool = False
    destroys: bool = False

    def allowed(self, request: HttpRequest) -> bool:
        """Say whether the user may do it at all."""
        return request.user.has_perm(self.permission)

    def fits(self, status: str) -> bool:
        """Say whether it does anything to a job of that status."""
        return JobStatus(status) in self.statuses

    def taken(self, wanted: Filter) -> frozenset[JobStatus]:
        """Say which statuses it takes of what a filter lets through."""
        return (wanted.statuses & self.statuses) if wanted.statuses else self.usual

    def meant(self, wanted: Filter) -> Filter:
        """Narrow a filter to what the verb takes of it; ``taken`` must not be empty."""
        return replace(wanted, statuses=self.taken(wanted))

    def said(self, order: Order) -> str:
        """Word an order for the log."""
        values = {"at": order.scheduled_at, "priority": order.priority, "queue": order.queue}
        phrase = str(self.logged) % {name: "" if value is None else f"{value}" for name, value in values.items()}
        return f"{phrase}: {order.why}" if order.why else f"{phrase}."


def _retry(ids: Sequence[str], order: Order, after: timedelta) -> Handled:
    return control.retry(ids, every=order.every, after=after)


def _amend(ids: Sequence[str], order: Order, _after: timedelta) -> Handled:
    return control.amend(ids, order.amendment)


def _cancel(ids: Sequence[str], _order: Order, _after: timedelta) -> Handled:
    return control.cancel(ids)


def _purge(ids: Sequence[str], _order: Order, _after: timedelta) -> Handled:
    return control.purge(ids)


def _never(_job: Job, _order: Order, _now: datetime) -> None:
    return None


def _is_due(job: Job, _order: Order, now: datetime) -> str | None:
    # To make it due now would put it behind all that became due since.
    is_due = job.status == JobStatus.QUEUED and job.scheduled_at <= now
    return gettext("is due already") if is_due else None


def _has_time(job: Job, order: Order, _now: datetime) -> str | None:
    return gettext("is scheduled for that moment already") if job.scheduled_at == order.scheduled_at else None


def _has_priority(job: Job, order: Order, _now: datetime) -> str | None:
    return gettext("has that priority already") if job.priority == order.priority else None


def _has_queue(job: Job, order: Order, _now: datetime) -> str | None:
    return gettext("is in that queue already") if job.queue == order.queue else None


def _was_asked(job: Job, _order: Order, _now: datetime) -> str | None:
    was_asked = job.status == JobStatus.IN_PROGRESS and job.cancel_requested_at is not None
    return gettext("was asked to stop already") if was_asked else None


_WAITING: dict[str, Any] = {
    "statuses": control.AMENDED,
    "usual": control.AMENDED,
    "work": _amend,
    "others": _("only queued jobs can be changed"),
}

VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            name="retry",
            label=pgettext_lazy("verb", "Retry"),
            permission="jobqueue.retry_job",
            statuses=sources(Move.REVIVE),
            usual=control.RETRIED,
            work=_retry,
            idle=_never,
            asked=lambda count: ngettext("Retry %(shown)s job", "Retry %(shown)s jobs", count),
            will=lambda count: ngettext(
                "%(shown)s job will be queued again, with all its attempts; its history stays.",
                "%(shown)s jobs will be queued again, with all their attempts; their history stays.",
                count,
            ),
            done=lambda count: ngettext("%(count)d job is queued again.", "%(count)d jobs are queued again.", count),
            others=_("only failed jobs and dead letters can be retried"),
            spared=_("they were stopped by decision; filter by this status to mean them"),
            logged=_("Retried"),
            plain=True,
        ),
        Verb(
            **_WAITING,
            name="run_now",
            label=pgettext_lazy("verb", "Run now"),
            permission="jobqueue.run_job",
            idle=_is_due,
            asked=lambda count: ngettext("Run %(shown)s job now", "Run %(shown)s jobs now", count),
            will=lambda count: ngettext(
                "%(shown)s job will be due at once, if it waits for a later time.",
                "%(shown)s jobs will be due at once; those that wait for a later time are changed.",
                count,
            ),
            done=lambda count: ngettext("%(count)d job is due now.", "%(count)d jobs are due now.", count),
            logged=_("Made due at once"),
            plain=True,
        ),
        Verb(
            **_WAITING,
            name="reschedule",
            label=pgettext_lazy("verb", "Reschedule"),
            permission="jobqueue.reschedule_job",
            idle=_has_time,
            asked=lambda count: ngettext("Reschedule %(shown)s job", "Reschedule %(shown)s jobs", count),
            will=lambda count: ngettext(
                "%(shown)s job will wait until the time you give.",
                "%(shown)s jobs will wait until the time you give.",
                count,
            ),
            done=lambda count: ngettext("%(count)d job is rescheduled.", "%(count)d jobs are rescheduled.", count),
            logged=_("Rescheduled to %(at)s"),
        ),
        Verb(
            **_WAITING,
            name="prioritise",
            label=pgettext_lazy("verb", "Change priority"),
            permission="jobqueue.prioritise_job",
            idle=_has_priority,
            asked=lambda count: ngettext(
                "Change the priority of %(shown)s job", "Change the priority of %(shown)s jobs", count
            ),
            will=lambda count: ngettext(
                "%(shown)s job will have the priority you give.",
                "%(shown)s jobs will have the priority you give.",
                count,
            ),
            done=lambda count: ngettext(
                "%(count)d job has another priority.", "%(count)d jobs have another priority.", count
            ),
            logged=_("Priority changed to %(priority)s"),
        ),
        Verb(
            **_WAITING,
            name="move",
            label=pgettext_lazy("verb", "Move to another queue"),
            permission="jobqueue.move_job",
            idle=_has_queue,
            asked=lambda count: ngettext(
                "Move %(shown)s job to another queue", "Move %(shown)s jobs to another queue", count
            ),
            will=lambda count: ngettext(
                "%(shown)s job will wait in the queue you give.",
                "%(shown)s jobs will wait in the queue you give.",
                count,
            ),
            done=lambda count: ngettext("%(count)d job is moved.", "%(count)d jobs are moved.", count),
            logged=_("Moved to the queue %(queue)s"),
        ),
        Verb(
            name="cancel",
            label=pgettext_lazy("verb", "Cancel"),
            permission="jobqueue.cancel_job",
            statuses=sources(Move.CANCEL),
            usual=control.CANCELLED,
            work=_cancel,
            idle=_was_asked,
            asked=lambda count: ngettext("Cancel %(shown)s job", "Cancel %(shown)s jobs", count),
            will=lambda count: ngettext(
                "%(shown)s job will end as failed; if it runs, it is asked to stop.",
                "%(shown)s jobs will end as failed; those that run are asked to stop.",
                count,
            ),
            done=lambda count: ngettext(
                "%(count)d job is cancelled; if it runs, it is asked to stop.",
                "%(count)d jobs are cancelled; those that run are asked to stop.",
                count,
            ),
            others=_("they have ended already"),
            logged=_("Cancelled"),
            plain=True,
        ),
        Verb(
            name="purge",
            label=pgettext_lazy("verb", "Purge"),
            permission="jobqueue.purge_job",
            statuses=frozenset(JobStatus) - {JobStatus.IN_PROGRESS},
            usual=control.PURGED,
            work=_purge,
            idle=_never,
            asked=lambda count: ngettext("Purge %(shown)s job", "Purge %(shown)s jobs", count),
            will=lambda count: ngettext(
                "%(shown)s job will be deleted with its history. This cannot be undone.",
                "%(shown)s jobs will be deleted with their history. This cannot be undone.",
                count,
            ),
            done=lambda count: ngettext(
                "%(count)d job is deleted, with its history.", "%(count)d jobs are deleted, with their history.", count
            ),
            others=_("they run; cancel them first"),
            spared=_("they wait; filter by this status to mean them"),
            logged=_("Purged"),
            destroys=True,
        ),
    )
}
