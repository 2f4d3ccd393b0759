"""An instruction carried out on one batch of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from django.utils.translation import gettext

from jobqueue import backends, conf
from jobqueue.models import Job, Order
from jobqueue.orders.instruction import TYPE, Instruction
from jobqueue.orders.refusals import worded
from jobqueue.orders.verbs import VERBS
from jobqueue.records import Filter, Handled, Refusal

#: The columns that the verbs' ``why_skip`` and an order's ``spared`` need.
_READ = ("id", "type", "status", "queue", "priority", "scheduled_at", "completed_at", "cancel_requested_at")


def carry_out(
    instruction: Instruction,
    ids: Sequence[str],
    *,
    after: timedelta = timedelta(0),
    spared: Callable[[Job], str | None] = lambda _job: None,
) -> Handled:
    """Carry an instruction out on at most a batch of jobs, in the caller's transaction.

    Jobs that need no change are left alone. Retried jobs become due from ``after`` on. ``spared`` returns a further
    reason to leave a job alone.
    """
    verb, now = VERBS[instruction.verb], backends.current().now()
    rows = Job.objects.using(conf.get("DATABASE")).filter(pk__in=ids).only(*_READ).in_bulk()
    foreign = _orders_of_others(instruction, rows)
    reasons = {
        job_id: foreign.get(job_id) or spared(job) or verb.why_skip(job, instruction, now)
        for job_id, job in rows.items()
    }
    left = [Refusal(job_id, reason) for job_id, reason in reasons.items() if reason]
    handled = verb.act([job_id for job_id in ids if not reasons.get(job_id)], instruction, after)
    return Handled(handled.done, (*left, *worded(handled.refused)), handled.asked)


def _orders_of_others(instruction: Instruction, rows: Mapping[str, Job]) -> dict[str, str]:
    """Find jobs that carry out another user's order. A retry would act in that user's name, with their permissions."""
    jobs = {job_id for job_id, job in rows.items() if job.type == TYPE} if instruction.verb == "retry" else set()
    if not jobs:
        return {}
    own = Order.objects.using(conf.get("DATABASE")).filter(job_id__in=jobs, user_id=instruction.user_id)
    reason = gettext("carries out another operator's order; give that order in your own name")
    return dict.fromkeys(jobs.difference(own.values_list("job_id", flat=True)), reason)


def own_kind(found: Job, wanted: Filter) -> str | None:
    """Return why a job that carries out an order is left alone, unless the filter names its type or id.

    A retry would repeat the old order.
    """
    if found.type != TYPE or TYPE in wanted.types or found.pk in wanted.ids:
        return None
    return gettext("carries out an operator's order; filter by its type to include it")
