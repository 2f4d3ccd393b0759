"""The ports of a backend: the methods for operators, monitors and duties, in one class for each subject.

Beside its duties, a worker uses only two of the ports: it adds to the metrics, and reports itself to the registry.
"""

from __future__ import annotations

from jobqueue.backends.ports.alerts import Alerts
from jobqueue.backends.ports.duties import DutyRoster
from jobqueue.backends.ports.errors import ErrorReader
from jobqueue.backends.ports.gauges import Gauges
from jobqueue.backends.ports.health import HealthReader
from jobqueue.backends.ports.jobs import JobReader
from jobqueue.backends.ports.lanes import Lanes
from jobqueue.backends.ports.limits import Limits
from jobqueue.backends.ports.metrics import Metrics
from jobqueue.backends.ports.operator import Operator
from jobqueue.backends.ports.outstanding import OutstandingReader
from jobqueue.backends.ports.retention import Retention
from jobqueue.backends.ports.schedules import Schedules
from jobqueue.backends.ports.setup import SetupReader
from jobqueue.backends.ports.storage import StorageReader
from jobqueue.backends.ports.turns import Turns
from jobqueue.backends.ports.workers import WorkerRegistry

__all__ = [
    "Alerts",
    "DutyRoster",
    "ErrorReader",
    "Gauges",
    "HealthReader",
    "JobReader",
    "Lanes",
    "Limits",
    "Metrics",
    "Operator",
    "OutstandingReader",
    "Retention",
    "Schedules",
    "SetupReader",
    "StorageReader",
    "Turns",
    "WorkerRegistry",
]
