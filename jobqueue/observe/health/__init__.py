"""The evaluation of what is wrong with the queue, for commands, the dashboard and monitors.

A command or page makes a ``Reading`` of what it has read, and words the findings in its own way.
"""

from __future__ import annotations

from jobqueue.observe.health.evaluation import OLD, RELAYED_WITHIN, findings
from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import QueueState, Reading, exact, queue_states

__all__ = [
    "OLD",
    "RELAYED_WITHIN",
    "Cause",
    "Finding",
    "Level",
    "Place",
    "QueueState",
    "Reading",
    "exact",
    "findings",
    "queue_states",
]
