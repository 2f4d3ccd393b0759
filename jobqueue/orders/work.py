"""The execution of an order on a batch of jobs."""

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
from jobqueue.records import Filter, Handled, Refusal

#: The columns that the log and the verbs' ``why_skip`` need.
_READ = ("id", "type", "status", "queue", "priority", "scheduled_at", "completed_at", "cancel_requested_at")


def carry_out(
    order: Order,
    ids: Sequence[str],
    *,
    after: timedelta = timedelta(0),
    message: str = "",
    spared: Callable[[Job], str | None] = lambda _job: None,
) -> Handled:
    """Carry an order out on at most a batch of jobs, and log each changed job with the user and the reason.

    Jobs that need no change are left alone. Retried jobs become due from ``after`` on. ``spared`` returns a further
    reason to leave a job alone.
    """
    verb, now = VERBS[order.verb], backends.current().now()
    with together():
        # Read first: after a purge there is nothing left to log.
        rows = Job.objects.using(conf.get("DATABASE")).filter(pk__in=ids).only(*_READ).in_bulk()
        foreign = _orders_of_others(order, rows)
        reasons = {
            job_id: foreign.get(job_id) or spared(job) or verb.why_skip(job, order, now) for job_id, job in rows.items()
        }
        left = [Refusal(job_id, reason) for job_id, reason in reasons.items() if reason]
        handled = verb.act([job_id for job_id in ids if not reasons.get(job_id)], order, after)
        changed = [rows[job_id] for job_id in handled.done if job_id in rows]
        log(order.user_id, changed, message or verb.log_message(order), deleted=verb.deletes)
    return Handled(handled.done, (*left, *worded(handled.refused)))


def _orders_of_others(order: Order, rows: Mapping[str, Job]) -> dict[str, str]:
    """Find jobs that carry out another user's order. A retry would act in that user's name, with their permissions."""
    orders = {job_id for job_id, job in rows.items() if job.type == TYPE} if order.verb == "retry" else set()
    if not orders:
        return {}
    own = Filter(ids=frozenset(orders), payload=(("order.user_id", order.user_id),))
    foreign = orders.difference(backends.current().jobs.find_ids(own, len(orders)))
    reason = gettext("carries out another operator's order; give that order in your own name")
    return dict.fromkeys(foreign, reason)
