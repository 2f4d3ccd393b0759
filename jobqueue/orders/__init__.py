"""An operator's orders from the admin: who wants which verb and why. Carried out in batches, and logged."""

from __future__ import annotations

from jobqueue.orders.log import log, together
from jobqueue.orders.order import Order
from jobqueue.orders.refusals import error_told, predicate, worded
from jobqueue.orders.verbs import VERBS, Verb
from jobqueue.orders.work import carry_out

__all__ = ["VERBS", "Order", "Verb", "carry_out", "error_told", "log", "predicate", "together", "worded"]
