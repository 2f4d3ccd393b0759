"""Carrying an order out on a batch of jobs: what it would not change is left alone, the rest is done and logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from django.utils.translation import gettext

from jobqueue import backends, conf
from jobqueue.models import Job
from jobqueue.orders.log import log, together
from jobqueue.orders.order import TYPE, Order
from jobqueue.orders.refusals import worded
from jobqueue.orders.verbs import VERBS
from jobqueue.records import Handled, Refusal

#: Of each job: what it is called in the log, and what tells whether there is anything to do.
_READ = ("id", "type", "status", "queue", "priority", "scheduled_at", "completed_at", "cancel_requested_at")


def carry_out(
    order: Order,
    ids: Sequence[str],
    *,
    after: timedelta = timedelta(0),
    message: str = "",
    spared: Callable[[Job], str | None] = lambda _job: None,
) -> Handled:
    """Do what is ordered to at most a batch of jobs, and log each that it changed, with who and why.

    A retry begins ``after`` so long. ``spared`` names reasons of the caller's own to leave a job alone.
    """
    verb, now = VERBS[order.verb], backends.current().now()
    with together():
        # Read first: a purge leaves nothing to name.
        rows = Job.objects.using(conf.get("DATABASE")).filter(pk__in=ids).only(*_READ).in_bulk()
        foreign = _orders_of_others(order, rows)
        reasons = {
            job_id: foreign.get(job_id) or spared(job) or verb.idle(job, order, now) for job_id, job in rows.items()
        }
        left = [Refusal(job_id, reason) for job_id, reason in reasons.items() if reason]
        handled = verb.work([job_id for job_id in ids if not reasons.get(job_id)], order, after)
        changed = [rows[job_id] for job_id in handled.done if job_id in rows]
        log(order.user_id, changed, message or verb.said(order), deleted=verb.destroys)
    return Handled(handled.done, (*left, *worded(handled.refused)))


def _orders_of_others(order: Order, rows: Mapping[str, Job]) -> dict[str, str]:
    """Name the orders that somebody else gave: retried, each is done in their name and by their rights."""
    orders = {job_id for job_id, job in rows.items() if job.type == TYPE} if order.verb == "retry" else set()
    if not orders:
        return {}
    found = Job.objects.using(conf.get("DATABASE")).filter(pk__in=orders, payload__order__user_id=order.user_id)
    own = set(found.values_list("pk", flat=True))
    reason = gettext("is an order of another operator; give it in your own name")
    return dict.fromkeys(orders - own, reason)
