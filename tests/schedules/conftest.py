"""A job type, and schedules that are declared for one test."""

from __future__ import annotations

import pytest

from jobqueue import job
from jobqueue.handlers.registry import registry
from jobqueue.schedules import declared


@pytest.fixture
def clocked(queue, clock):
    """The backend that the public API uses, on a virtual clock."""
    queue.clock = clock
    yield queue
    queue.clock = None


@pytest.fixture
def tidy(monkeypatch):
    """The handler of a type with a payload of one number, and no schedules but those that the test declares."""
    monkeypatch.setattr(declared, "_declared", {})
    monkeypatch.setattr(declared, "_where", {})
    types = dict(registry._types)

    @job("tidy")
    def tidy(age: int = 24) -> None:
        pass

    yield tidy
    registry._types = types
