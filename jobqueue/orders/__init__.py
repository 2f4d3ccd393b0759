"""An operator's orders from the admin: a verb, by whom and why, carried out batch by batch and logged there."""

from __future__ import annotations

from jobqueue.orders.log import log, together
from jobqueue.orders.order import Order
from jobqueue.orders.refusals import error_told, worded
from jobqueue.orders.verbs import VERBS, Verb
from jobqueue.orders.work import carry_out

__all__ = ["VERBS", "Order", "Verb", "carry_out", "error_told", "log", "together", "worded"]
