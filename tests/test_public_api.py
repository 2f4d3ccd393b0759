"""Tests of the public names: a sorted list, and exactly what the package exports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import jobqueue
from jobqueue import errors, signals

ROOT = Path(__file__).resolve().parents[1]


def test_the_list_is_sorted_and_names_nothing_twice():
    assert jobqueue.__all__ == sorted(set(jobqueue.__all__))


def test_the_list_is_exactly_what_the_package_exports():
    exported = {
        name
        for name, value in vars(jobqueue).items()
        if not name.startswith("_") and name != "annotations" and not isinstance(value, ModuleType)
    }
    assert exported == set(jobqueue.__all__)


def test_the_list_has_every_name_that_the_design_promises():
    promised = (
        "job enqueue enqueue_many enqueue_on_commit get Handler Receipt JobContext JobStatus "
        "Retry Snooze Discard Cancel Exponential Fixed JobQueueError UnknownJobType IdempotencyMismatch LeaseLost"
    )
    assert set(promised.split()) <= set(jobqueue.__all__)


def test_every_error_and_every_verdict_is_public():
    own = {
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, (errors.JobQueueError, errors.Verdict))
    }
    assert own - {"Verdict"} <= set(jobqueue.__all__)


def test_every_public_name_says_what_it_is():
    silent = [name for name in jobqueue.__all__ if not (getattr(jobqueue, name).__doc__ or "").strip()]
    assert silent == []


def test_the_signals_are_where_they_are_promised():
    assert hasattr(signals.enqueued, "send_robust")


def test_the_package_is_imported_without_settings_and_touches_no_database():
    script = "import sys, jobqueue; assert 'sqlite3' not in sys.modules and 'psycopg' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
