"""Tests of a relay that dies at any point: each job arrives once, in order, even if it was purged there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.relay.dying import POINTS
from tests.worker.harness import ROOT, database_of

pytestmark = pytest.mark.postgres

STORED = {"after Intake.receive", "before Outbox.close", "in Outbox.close", "after Outbox.close"}


def test_a_kill_at_every_step_loses_nothing_and_repeats_nothing(ways):
    given = {
        "database": database_of(ways.here),
        "databases": {"shared": database_of(ways.there)},
        "jobqueue": {"DATABASE": "default", "RELAY_TO": "shared"},
        "apps": [],
        "constants": {},
    }
    own = {"DJANGO_SETTINGS_MODULE": "tests.worker.settings", "JOBQUEUE_TEST_SETTINGS": json.dumps(given)}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.relay.dying"],
        cwd=ROOT,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        check=True,
        timeout=100,
    )
    told = json.loads(ran.stdout)
    assert list(told) == list(POINTS)
    for point, found in told.items():
        assert (found["death"], found["end"], found["left"]) == (-signal.SIGKILL, 0, 0), point
        assert (found["before"], found["after"]) == ((found["ids"], []) if point in STORED else ([], found["ids"])), (
            point
        )
