"""The queue inside the transaction of an ordinary test, on each backend."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from jobqueue import backends


@pytest.fixture(
    params=[
        "memory",
        pytest.param("default", marks=pytest.mark.sqlite),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ],
    ids=["memory", "sqlite", "postgres"],
)
def rolled_back(request, databases, settings):
    """A transaction as a ``TestCase`` opens it. Returns the backend."""
    alias = "default" if request.param == "memory" else request.param
    settings.JOBQUEUE = (
        {"BACKEND": "jobqueue.backends.memory.MemoryBackend"} if request.param == "memory" else {"DATABASE": alias}
    )
    block = transaction.atomic(using=alias)
    block._from_testcase = True
    with block:
        yield backends.current()
        transaction.set_rollback(True, using=alias)
    assert not Group.objects.using(alias).exists()
