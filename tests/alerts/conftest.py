"""Fixtures of the alerts: a queue in memory on a virtual clock, and settings with a channel."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.alert_settings import DELIVERY_TYPE
from jobqueue.backends.memory import MemoryBackend
from jobqueue.channels import job as _delivery  # noqa: F401 - registers the type of the deliveries
from jobqueue.observe.health import observation
from jobqueue.records import Filter
from jobqueue.testing import VirtualClock
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.worker.conftest import jobs, ledger, start_worker  # noqa: F401 - fixtures

DELIVERIES = Filter(types=frozenset({DELIVERY_TYPE}))
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def backend(clock, monkeypatch):
    """A queue in memory, with a release that has handlers for its types."""
    known = type("Registry", (), {"names": frozenset({"resize", "greet", DELIVERY_TYPE})})
    monkeypatch.setattr(observation, "registry", known)
    return MemoryBackend(clock=clock)


@pytest.fixture
def configure(settings):
    """A function that sets ``ALERTS``; by default, it has one channel."""

    def with_alerts(**values):
        usual = {"channels": {"ops": {"via": "log"}}}
        settings.JOBQUEUE = getattr(settings, "JOBQUEUE", {}) | {"ALERTS": usual | values}

    with_alerts()
    return with_alerts


@pytest.fixture
def told(backend, configure):
    """A function that returns what was told since its last call: the channel, the kind of news, and the keys."""
    known = set()

    def read():
        found = [one for one in backend.jobs.find(DELIVERIES, 1_000) if one.id not in known]
        known.update(one.id for one in found)
        return [
            (one.payload["channel"], one.payload["news"], sorted(alert["key"] for alert in one.payload["alerts"]))
            for one in found
        ]

    return read
