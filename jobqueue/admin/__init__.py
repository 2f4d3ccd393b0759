"""The job queue in Django's admin. Only the admin's autodiscovery imports it."""

from __future__ import annotations

from jobqueue.admin.alerts.alerts import AlertAdmin
from jobqueue.admin.dashboard.dashboard import DashboardAdmin
from jobqueue.admin.lists.dead_letters import DeadLetterAdmin
from jobqueue.admin.lists.jobs import JobAdmin
from jobqueue.admin.operations.queues import QueueAdmin
from jobqueue.admin.operations.workers import WorkerAdmin
from jobqueue.admin.orders.orders import OrderAdmin
from jobqueue.admin.schedules.schedules import ScheduleAdmin

__all__ = [
    "AlertAdmin",
    "DashboardAdmin",
    "DeadLetterAdmin",
    "JobAdmin",
    "OrderAdmin",
    "QueueAdmin",
    "ScheduleAdmin",
    "WorkerAdmin",
]
