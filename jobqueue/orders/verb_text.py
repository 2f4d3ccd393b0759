"""The words of each verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

#: A text for a number of jobs. Not ``ngettext_lazy``: each call makes two classes, 34 kB in every worker.
Plural = Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbText:
    """What one verb says, in the active language."""

    #: The button on a job's page.
    label: Any
    #: The question before, without its question mark; also the button that agrees.
    question: Plural
    #: What will happen to the jobs, shown with the question.
    effect: Plural
    #: What happened to them.
    success: Plural
    #: The entry in the log; ``%(at)s``, ``%(priority)s`` and ``%(queue)s`` are the order's.
    log_entry: Any
    #: Why it does nothing to jobs of other statuses.
    not_eligible: Any
    #: Why it leaves jobs alone that are eligible, unless the filter names their status.
    not_default: Any = ""


_ONLY_QUEUED = _("only queued jobs can be changed")

RETRY = VerbText(
    label=pgettext_lazy("verb", "Retry"),
    question=lambda count: ngettext("Retry %(shown)s job", "Retry %(shown)s jobs", count),
    effect=lambda count: ngettext(
        "%(shown)s job will be queued again with all its attempts. Its history is kept.",
        "%(shown)s jobs will be queued again with all their attempts. Their history is kept.",
        count,
    ),
    success=lambda count: ngettext("%(count)d job is queued again.", "%(count)d jobs are queued again.", count),
    log_entry=_("Retried"),
    not_eligible=_("only cancelled jobs and dead letters can be retried"),
    not_default=_("they were cancelled on purpose; filter by this status to include them"),
)

RUN_NOW = VerbText(
    label=pgettext_lazy("verb", "Run now"),
    question=lambda count: ngettext("Run %(shown)s job now", "Run %(shown)s jobs now", count),
    effect=lambda count: ngettext(
        "%(shown)s job will become due now if it is scheduled for later.",
        "%(shown)s jobs will become due now if they are scheduled for later.",
        count,
    ),
    success=lambda count: ngettext("%(count)d job is due now.", "%(count)d jobs are due now.", count),
    log_entry=_("Made due now"),
    not_eligible=_ONLY_QUEUED,
)

RESCHEDULE = VerbText(
    label=pgettext_lazy("verb", "Reschedule"),
    question=lambda count: ngettext("Reschedule %(shown)s job", "Reschedule %(shown)s jobs", count),
    effect=lambda count: ngettext(
        "%(shown)s job will wait until the time you give.", "%(shown)s jobs will wait until the time you give.", count
    ),
    success=lambda count: ngettext("%(count)d job is rescheduled.", "%(count)d jobs are rescheduled.", count),
    log_entry=_("Rescheduled to %(at)s"),
    not_eligible=_ONLY_QUEUED,
)

PRIORITISE = VerbText(
    label=pgettext_lazy("verb", "Change priority"),
    question=lambda count: ngettext(
        "Change the priority of %(shown)s job", "Change the priority of %(shown)s jobs", count
    ),
    effect=lambda count: ngettext(
        "%(shown)s job will have the priority you give.", "%(shown)s jobs will have the priority you give.", count
    ),
    success=lambda count: ngettext("%(count)d job has a new priority.", "%(count)d jobs have a new priority.", count),
    log_entry=_("Priority changed to %(priority)s"),
    not_eligible=_ONLY_QUEUED,
)

MOVE = VerbText(
    label=pgettext_lazy("verb", "Move to another queue"),
    question=lambda count: ngettext(
        "Move %(shown)s job to another queue", "Move %(shown)s jobs to another queue", count
    ),
    effect=lambda count: ngettext(
        "%(shown)s job will wait in the queue you give.", "%(shown)s jobs will wait in the queue you give.", count
    ),
    success=lambda count: ngettext("%(count)d job is moved.", "%(count)d jobs are moved.", count),
    log_entry=_("Moved to the queue %(queue)s"),
    not_eligible=_ONLY_QUEUED,
)

CANCEL = VerbText(
    label=pgettext_lazy("verb", "Cancel"),
    question=lambda count: ngettext("Cancel %(shown)s job", "Cancel %(shown)s jobs", count),
    effect=lambda count: ngettext(
        "%(shown)s job will be cancelled; if it is running, it is asked to stop.",
        "%(shown)s jobs will be cancelled; those that are running are asked to stop.",
        count,
    ),
    success=lambda count: ngettext(
        "%(count)d job is cancelled; if it is running, it is asked to stop.",
        "%(count)d jobs are cancelled; those that are running are asked to stop.",
        count,
    ),
    log_entry=_("Cancelled"),
    not_eligible=_("they have already ended"),
)

PURGE = VerbText(
    label=pgettext_lazy("verb", "Purge"),
    question=lambda count: ngettext("Purge %(shown)s job", "Purge %(shown)s jobs", count),
    effect=lambda count: ngettext(
        "%(shown)s job will be deleted with its history. This cannot be undone.",
        "%(shown)s jobs will be deleted with their history. This cannot be undone.",
        count,
    ),
    success=lambda count: ngettext(
        "%(count)d job is deleted, with its history.", "%(count)d jobs are deleted, with their history.", count
    ),
    log_entry=_("Purged"),
    not_eligible=_("they are running; cancel them first"),
    not_default=_("they are queued; filter by this status to include them"),
)
