"""What an operator does to jobs from the admin: in batches, each job named in Django's log, and the outcome told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext, ngettext_lazy, pgettext_lazy

from jobqueue import conf, control
from jobqueue.control import BATCH
from jobqueue.errors import JobQueueError
from jobqueue.models import Job
from jobqueue.records import Handled, Refusal
from jobqueue.states import JobStatus, Move, sources

REASONS_SHOWN = 5
IDS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing an operator may do: to which statuses, with what permission, and how it is told."""

    name: str
    label: Any
    permission: str
    statuses: frozenset[JobStatus]
    work: Callable[[Sequence[str]], Handled]
    done: Any
    logged: str
    destroys: bool = False

    def allowed(self, request: HttpRequest) -> bool:
        """Say whether the user may do it at all."""
        return request.user.has_perm(self.permission)

    def fits(self, status: str) -> bool:
        """Say whether it does anything to a job of that status."""
        return JobStatus(status) in self.statuses


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "retry",
            pgettext_lazy("verb", "Retry"),
            "jobqueue.retry_job",
            sources(Move.REVIVE),
            control.retry,
            ngettext_lazy("%(count)d job is queued again.", "%(count)d jobs are queued again.", "count"),
            "Retried.",
        ),
        Verb(
            "cancel",
            pgettext_lazy("verb", "Cancel"),
            "jobqueue.cancel_job",
            sources(Move.CANCEL),
            control.cancel,
            ngettext_lazy(
                "%(count)d job is cancelled; if it runs, it is asked to stop.",
                "%(count)d jobs are cancelled; those that run are asked to stop.",
                "count",
            ),
            "Cancelled.",
        ),
        Verb(
            "purge",
            pgettext_lazy("verb", "Purge"),
            "jobqueue.purge_job",
            frozenset(JobStatus) - {JobStatus.IN_PROGRESS},
            control.purge,
            ngettext_lazy(
                "%(count)d job is deleted, with its history.",
                "%(count)d jobs are deleted, with their history.",
                "count",
            ),
            "Purged.",
            destroys=True,
        ),
    )
}


def operate(request: HttpRequest, verb: Verb, ids: Sequence[str], gone: Sequence[str] = ()) -> Handled:
    """Do a verb to jobs, log who did it, and tell the user; ``gone`` are those the page no longer shows."""
    done: list[str] = []
    refused = [Refusal(job_id, gettext("is gone, or no longer in this list")) for job_id in gone]
    try:
        for start in range(0, len(ids), BATCH):
            handled = _batch(request, verb, ids[start : start + BATCH])
            done += handled.done
            refused += handled.refused
    except JobQueueError as error:
        messages.error(request, str(error))
    _tell(request, verb, len(done), refused)
    return Handled(tuple(done), tuple(refused))


def _batch(request: HttpRequest, verb: Verb, ids: Sequence[str]) -> Handled:
    # Read first: a purge leaves nothing to name. Logged as jobs, whichever list they were found in.
    rows = Job.objects.using(conf.get("DATABASE")).filter(pk__in=ids).only("id", "type").in_bulk()
    handled = verb.work(ids)
    known = [rows[job_id] for job_id in handled.done if job_id in rows]
    if known:
        flag = DELETION if verb.destroys else CHANGE
        LogEntry.objects.log_actions(request.user.pk, known, flag, verb.logged)  # type: ignore[arg-type]
    return handled


def _tell(request: HttpRequest, verb: Verb, done: int, refused: Sequence[Refusal]) -> None:
    if done:
        messages.success(request, verb.done % {"count": done})
    by_reason: dict[str, list[str]] = defaultdict(list)
    for refusal in refused:
        by_reason[refusal.reason].append(refusal.id)
    for reason, ids in list(by_reason.items())[:REASONS_SHOWN]:
        left = ngettext("%(count)d job was left alone", "%(count)d jobs were left alone", len(ids))
        some = ", ".join(ids[:IDS_SHOWN]) + (", …" if len(ids) > IDS_SHOWN else "")
        messages.warning(request, f"{left % {'count': len(ids)}}: {reason} ({some}).")
    if (more := len(by_reason) - REASONS_SHOWN) > 0:
        others = ngettext("%(count)d more reason is not shown.", "%(count)d more reasons are not shown.", more)
        messages.warning(request, others % {"count": more})
