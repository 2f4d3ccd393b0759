"""The job that carries out orders which are too large for a request, or which begin later.

When the job runs again after a crash or a stop, it continues where the order is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.translation import gettext
from pydantic import BaseModel, ConfigDict

from jobqueue import backends
from jobqueue.api import job
from jobqueue.api.receipts import Receipt
from jobqueue.errors import Cancel, Snooze
from jobqueue.handlers.context import JobContext
from jobqueue.models import Order
from jobqueue.models.order import OPEN, OrderState
from jobqueue.orders.execution import close, instruction_of, next_batch, outcome, percent
from jobqueue.orders.instruction import TYPE as TYPE
from jobqueue.orders.seal import is_genuine
from jobqueue.orders.selection import orders
from jobqueue.orders.verbs import VERBS
from jobqueue.records import Scope

#: The queue of such jobs while the default queue is paused, so that an operator can still act on paused jobs.
QUEUE = "jobqueue"
LONGEST = timedelta(hours=12)


class Operation(BaseModel):
    """The id of the order to carry out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: str


def start(order: Order) -> Receipt[Any]:
    """Enqueue the job of an order, in the transaction that confirms it."""
    paused = {one.name for one in backends.current().operator.pauses() if one.scope is Scope.QUEUE}
    handler = operate.using(
        unique_key=f"{TYPE}-{order.pk}",
        queue=QUEUE if operate.options.queue in paused else operate.options.queue,
        scheduled_at=order.starts_at,
    )
    receipt: Receipt[Any] = handler.enqueue(Operation(order=order.pk))
    order.job_id = receipt.id
    orders().filter(pk=order.pk).update(job_id=receipt.id)
    return receipt


@job(TYPE, priority=1, max_retries=5, timeout=LONGEST, editable=False)
def operate(operation: Operation, ctx: JobContext) -> dict[str, Any]:
    """Carry an order out, as long as its user has the permission."""
    order = orders().filter(pk=operation.order).first()
    if order is None or order.job_id != ctx.job_id:
        raise Cancel(gettext("No order was given to this job."))
    if order.state in OPEN and not is_genuine(order):
        raise Cancel(gettext("This order was not confirmed in an admin with this SECRET_KEY."))
    wait = (order.starts_at or order.asked_at) - backends.current().now()
    if wait > timedelta(0):
        raise Snooze(wait)
    while order.state in OPEN:
        ctx.checkpoint()
        _require_permission(order)
        order = next_batch(order.pk)
        ctx.progress(percent(order), **outcome(order), of=order.total)
    if order.state != OrderState.DONE:
        raise Cancel(order.why_ended)
    return outcome(order)


def _require_permission(order: Order) -> None:
    """Stop the order if its user is gone or has lost the permission. Called before each batch."""
    instruction = instruction_of(order)
    user, name = instruction.user(), {"name": instruction.user_name}
    if user is None or not user.is_active:
        why = gettext("The user %(name)s was deleted or is no longer active.") % name
    elif instruction.of_staff and not getattr(user, "is_staff", False):
        why = gettext("The user %(name)s no longer has access to the admin.") % name
    elif not user.has_perms(["jobqueue.view_job", VERBS[order.verb].permission]):
        why = gettext("The user %(name)s no longer has the permission.") % name
    else:
        return
    far = gettext("Of %(of)d jobs, %(done)d were already changed and %(left_alone)d left alone.")
    why = f"{why} {far % {'of': order.total, 'done': order.done, 'left_alone': order.left_alone}}"
    with backends.current().atomic_attempt():
        close(order, OrderState.STOPPED, why)
    raise Cancel(why)
