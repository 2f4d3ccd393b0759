"""The orders of operators: which verb on which jobs, who wants it and why. Carried out in batches, and logged."""

from __future__ import annotations

from jobqueue.orders.audit import log, together
from jobqueue.orders.batch import carry_out
from jobqueue.orders.instruction import Instruction
from jobqueue.orders.refusals import error_told, predicate, worded
from jobqueue.orders.verbs import VERBS, Verb

__all__ = ["VERBS", "Instruction", "Verb", "carry_out", "error_told", "log", "predicate", "together", "worded"]
