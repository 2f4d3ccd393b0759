"""The names of the indexes that the job table should have."""

from __future__ import annotations

from django.apps import apps
from django.db.models import UniqueConstraint

from jobqueue.models import Job

#: The indexes that the model names. The primary key has its own.
JOB_INDEXES = frozenset(one.name for one in Job._meta.indexes) | {
    one.name for one in Job._meta.constraints if isinstance(one, UniqueConstraint)
}


def tables() -> list[str]:
    """Return the names of the queue's tables."""
    return sorted({model._meta.db_table for model in apps.get_app_config("jobqueue").get_models()})
