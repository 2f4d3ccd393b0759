"""The job queue in Django's admin. Imported by its autodiscovery alone: a project without the admin never meets it."""

from __future__ import annotations

from jobqueue.admin.dashboard import DashboardAdmin
from jobqueue.admin.dead_letters import DeadLetterAdmin
from jobqueue.admin.jobs import JobAdmin
from jobqueue.admin.queues import QueueAdmin
from jobqueue.admin.workers import WorkerAdmin

__all__ = ["DashboardAdmin", "DeadLetterAdmin", "JobAdmin", "QueueAdmin", "WorkerAdmin"]
