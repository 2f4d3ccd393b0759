"""The confirmation of an order, and its stop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.translation import gettext

from jobqueue import backends, control
from jobqueue.control import BATCH
from jobqueue.models import Order
from jobqueue.models.order import OPEN, OrderState
from jobqueue.orders import job
from jobqueue.orders.audit import log_order, together
from jobqueue.orders.execution import close
from jobqueue.orders.instruction import Instruction
from jobqueue.orders.seal import seal_of
from jobqueue.orders.selection import orders
from jobqueue.orders.verbs import VERBS

#: How long an order that deletes jobs can be stopped before it begins.
DELAY = timedelta(seconds=10)


def needs_job(order: Order) -> bool:
    """Return whether a job carries the order out: it is too large for a request, or begins later."""
    return order.total > BATCH or VERBS[order.verb].deletes


def confirm(order: Order, instruction: Instruction, title: str) -> bool:
    """Confirm a counted order, log it, and enqueue its job if it needs one.

    Return ``False`` if somebody has confirmed it already.
    """
    now = backends.current().now()
    order.instruction = instruction.model_dump(mode="json", exclude_defaults=True)
    order.state, order.title, order.given_at = OrderState.WAITING, title[:200], now
    order.starts_at = now + DELAY if VERBS[order.verb].deletes else now
    order.seal = seal_of(order, order.account["digest"])
    names = ("instruction", "state", "title", "given_at", "starts_at", "seal")
    with together(), backends.current().atomic_attempt():
        asked = orders().filter(pk=order.pk, state=OrderState.ASKED, counted_at=order.counted_at)
        if order.counted_at is None or not asked.update(**{name: getattr(order, name) for name in names}):
            return False
        if needs_job(order):
            job.start(order)
        log_order(instruction.user_id, order, VERBS[order.verb].log_message(instruction))
    return True


def stop(order_id: str, user_id: Any, user_name: str) -> bool:
    """Stop an order. A batch that has begun is finished first. Return ``False`` if the order has ended."""
    with together(), backends.current().atomic_attempt():
        order = orders().select_for_update().filter(pk=order_id).first()
        if order is None or order.state not in OPEN:
            return False
        close(order, OrderState.STOPPED, gettext("Stopped by %(name)s.") % {"name": user_name})
        if order.job_id:
            control.cancel([order.job_id])
        log_order(user_id, order, gettext("Stopped."))
    return True
