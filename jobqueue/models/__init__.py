"""The tables: jobs, history, pauses, workers, metrics and relays. Backends write them."""

from __future__ import annotations

from jobqueue.models.attempt import Attempt
from jobqueue.models.job import DeadLetter, Job
from jobqueue.models.metric import Dashboard, Metric
from jobqueue.models.pause import Pause, Queue
from jobqueue.models.relay import Relay
from jobqueue.models.worker import Worker

__all__ = ["Attempt", "Dashboard", "DeadLetter", "Job", "Metric", "Pause", "Queue", "Relay", "Worker"]
