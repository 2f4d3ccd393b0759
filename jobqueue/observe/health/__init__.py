"""The evaluation of what is wrong with the queue, for commands, the dashboard and monitors.

``look`` reads everything that is judged, ``findings`` judges it, and ``sentence`` and ``advice`` put it into words.
"""

from __future__ import annotations

from jobqueue.observe.health.evaluation import findings, level_of
from jobqueue.observe.health.finding import Cause, Failures, Finding, Level, Place
from jobqueue.observe.health.observation import look
from jobqueue.observe.health.reading import QueueState, Reading, queue_states
from jobqueue.observe.health.report import Check, Report, State, report
from jobqueue.observe.health.sentences import advice, sentence

__all__ = [
    "Cause",
    "Check",
    "Failures",
    "Finding",
    "Level",
    "Place",
    "QueueState",
    "Reading",
    "Report",
    "State",
    "advice",
    "findings",
    "level_of",
    "look",
    "queue_states",
    "report",
    "sentence",
]
