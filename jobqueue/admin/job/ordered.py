"""The orders that changed a job. Only a job that was changed by its own button has an entry of its own in the log."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet
from pydantic import ValidationError

from jobqueue import conf
from jobqueue.models import Job, Order, OrderedJob
from jobqueue.orders import VERBS
from jobqueue.orders.execution import instruction_of


def newest(job: Job) -> int | None:
    """Return a value that changes when another order has changed the job."""
    return _of(job).values_list("pk", flat=True).first()


def orders_of(job: Job, most: int) -> list[Order]:
    """Read the newest orders that changed a job."""
    ids = list(_of(job).values_list("order_id", flat=True)[:most])
    found = Order.objects.using(conf.get("DATABASE")).in_bulk(ids)
    return [found[one] for one in ids if one in found]


def who_and_what(order: Order) -> Sequence[str]:
    """Return who gave an order, and what it did to each of its jobs and why."""
    try:
        given = instruction_of(order)
        return given.user_name, VERBS[given.verb].log_message(given)
    except (ValidationError, KeyError):  # written by a newer release, or by another program
        return "", order.title


def _of(job: Job) -> QuerySet[OrderedJob]:
    return OrderedJob.objects.using(conf.get("DATABASE")).filter(job_id=job.pk).order_by("-pk")
