"""The execution of a verb in a request, in batches, with messages about the outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from jobqueue.control import BATCH
from jobqueue.errors import JobQueueError
from jobqueue.models import Job
from jobqueue.orders import VERBS, Order, Verb, carry_out, error_told, predicate
from jobqueue.records import Handled, Refusal

__all__ = ["VERBS", "Verb", "execute", "tell_gone", "tell_left_alone"]

REASONS_SHOWN = 5
IDS_SHOWN = 3


def execute(
    request: HttpRequest,
    order: Order,
    ids: Sequence[str],
    gone: Sequence[str] = (),
    spared: Callable[[Job], str | None] = lambda _job: None,
) -> Handled:
    """Carry an order out on jobs, and add messages. ``gone`` are selected jobs that the list no longer has."""
    done: list[str] = []
    refused = list(map(_gone, gone))
    try:
        for start in range(0, len(ids), BATCH):
            handled = carry_out(order, ids[start : start + BATCH], after=start * order.every, spared=spared)
            done += handled.done
            refused += handled.refused
    except JobQueueError as error:
        messages.error(request, error_told(error))
    _tell(request, VERBS[order.verb], len(done), refused)
    return Handled(tuple(done), tuple(refused))


def tell_gone(request: HttpRequest, verb: Verb, job_id: str) -> None:
    """Add a message that the job is gone."""
    _tell(request, verb, 0, [_gone(job_id)])


def _gone(job_id: str) -> Refusal:
    return Refusal(job_id, gettext("is gone or no longer in this list"))


def _tell(request: HttpRequest, verb: Verb, done: int, refused: Sequence[Refusal]) -> None:
    if done:
        messages.success(request, verb.text.success(done) % {"count": done})
    tell_left_alone(request, refused)


def tell_left_alone(request: HttpRequest, refused: Sequence[Refusal]) -> None:
    """Add messages about the jobs that were left alone, by reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for refusal in refused:
        by_reason[predicate(refusal)].append(refusal.id)
    for reason, ids in list(by_reason.items())[:REASONS_SHOWN]:
        left = ngettext(
            "%(count)d job was left alone: it %(why)s (%(ids)s).",
            "Each of %(count)d jobs was left alone: it %(why)s (%(ids)s).",
            len(ids),
        )
        some = ", ".join(ids[:IDS_SHOWN]) + (", …" if len(ids) > IDS_SHOWN else "")
        messages.warning(request, left % {"count": len(ids), "why": reason, "ids": some})
    if (more := len(by_reason) - REASONS_SHOWN) > 0:
        others = ngettext("%(count)d more reason is not shown.", "%(count)d more reasons are not shown.", more)
        messages.warning(request, others % {"count": more})
