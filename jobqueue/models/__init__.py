"""The tables: jobs, their history, what is paused, and who works. The backends do the writing."""

from __future__ import annotations

from jobqueue.models.attempt import Attempt
from jobqueue.models.job import DeadLetter, Job
from jobqueue.models.pause import Pause
from jobqueue.models.worker import Worker

__all__ = ["Attempt", "DeadLetter", "Job", "Pause", "Worker"]
