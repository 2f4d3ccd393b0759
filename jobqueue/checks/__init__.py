"""The system checks: mistakes in the settings, and risks of the database and the handlers, each with a hint."""

from __future__ import annotations

from jobqueue import conf
from jobqueue.checks.alerts import check_alerts
from jobqueue.checks.connections import check_connections
from jobqueue.checks.handlers import check_handlers
from jobqueue.checks.retention import check_retention
from jobqueue.checks.settings import EMBEDDING, check_commands, check_settings

#: The tag of all checks here and in the apps of jobqueue.contrib: ``manage.py check --tag jobqueue``.
TAG = conf.CHECKS

__all__ = [
    "EMBEDDING",
    "TAG",
    "check_alerts",
    "check_commands",
    "check_connections",
    "check_handlers",
    "check_retention",
    "check_settings",
]
