"""The tables, with a file for each subject."""

from __future__ import annotations

from jobqueue.models.alert import Alert, Silence
from jobqueue.models.attempt import Attempt
from jobqueue.models.counter import Counter
from jobqueue.models.duty import Duty
from jobqueue.models.gauge import Gauge
from jobqueue.models.job import DeadLetter, Job
from jobqueue.models.known_error import KnownError
from jobqueue.models.limit import Start, StoredLimit
from jobqueue.models.metric import Dashboard, Metric
from jobqueue.models.order import Order, OrderedJob, OrderPart
from jobqueue.models.pause import Pause, Queue
from jobqueue.models.relay import Relay
from jobqueue.models.saved_search import SavedSearch
from jobqueue.models.schedule import Schedule
from jobqueue.models.throttle import Throttle
from jobqueue.models.turn import Turn
from jobqueue.models.worker import Worker

__all__ = [
    "Alert",
    "Attempt",
    "Counter",
    "Dashboard",
    "DeadLetter",
    "Duty",
    "Gauge",
    "Job",
    "KnownError",
    "Metric",
    "Order",
    "OrderPart",
    "OrderedJob",
    "Pause",
    "Queue",
    "Relay",
    "SavedSearch",
    "Schedule",
    "Silence",
    "Start",
    "StoredLimit",
    "Throttle",
    "Turn",
    "Worker",
]
