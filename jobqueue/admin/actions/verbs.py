"""The execution of a verb in a request, with messages about the outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from django.contrib import messages
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext

from jobqueue.backends import current
from jobqueue.errors import JobQueueError
from jobqueue.models import Job, Order
from jobqueue.models.order import OPEN, OrderState
from jobqueue.orders import VERBS, Instruction, Verb, carry_out, error_told, log, predicate, together
from jobqueue.orders.execution import close, next_batch, outcome
from jobqueue.records import Refusal

__all__ = ["VERBS", "Verb", "act_on_one", "perform", "tell_gone", "tell_left_alone"]

REASONS_SHOWN = 5
IDS_SHOWN = 3


def act_on_one(request: HttpRequest, instruction: Instruction, job: Job) -> None:
    """Carry an instruction out on one job, log it with the job, and add messages."""
    verb = VERBS[instruction.verb]
    try:
        with together():
            handled = carry_out(instruction, [job.pk])
            if handled.done:
                log(instruction.user_id, job, verb.log_message(instruction), deleted=verb.deletes)
    except JobQueueError as error:
        messages.error(request, error_told(error))
    else:
        _tell(request, verb, len(handled.done), handled.refused)


def perform(request: HttpRequest, order: Order, page: str) -> None:
    """Carry a confirmed order out in the request, and add messages, with a link to the order's page."""
    try:
        while order.state in OPEN:
            order = next_batch(order.pk)
    except JobQueueError as error:
        messages.error(request, error_told(error))
        with suppress(JobQueueError), current().atomic_attempt():
            close(order, OrderState.STOPPED, error_told(error))
    verb = VERBS[order.verb]
    if order.done:
        told = verb.text.success(order.done) % {"count": order.done}
        messages.success(request, format_html('{} <a href="{}">{}</a>', told, page, gettext("Show the order")))
    for words in left_alone(order):
        messages.warning(request, words)


def left_alone(order: Order) -> list[str]:
    """Say which jobs an order left alone, by reason."""
    found = outcome(order)["reasons"]
    return _reasons_told([(one["reason"], one["count"], one["ids"]) for one in found])


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
    for words in _reasons_told([(reason, len(ids), ids) for reason, ids in by_reason.items()]):
        messages.warning(request, words)


def _reasons_told(reasons: Sequence[tuple[str, int, Sequence[str]]]) -> list[str]:
    told = []
    for reason, count, ids in reasons[:REASONS_SHOWN]:
        left = ngettext(
            "%(count)d job was left alone: it %(why)s (%(ids)s).",
            "Each of %(count)d jobs was left alone: it %(why)s (%(ids)s).",
            count,
        )
        some = ", ".join(ids[:IDS_SHOWN]) + (", …" if count > IDS_SHOWN else "")
        told.append(left % {"count": count, "why": reason, "ids": some})
    if (more := len(reasons) - REASONS_SHOWN) > 0:
        others = ngettext("%(count)d more reason is not shown.", "%(count)d more reasons are not shown.", more)
        told.append(others % {"count": more})
    return told
