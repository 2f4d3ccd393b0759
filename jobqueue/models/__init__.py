"""The tables: jobs, their history, and what is paused. Schema and reading; the writing is done by the backends."""

from __future__ import annotations

from jobqueue.models.attempt import Attempt
from jobqueue.models.job import Job
from jobqueue.models.pause import Pause

__all__ = ["Attempt", "Job", "Pause"]
