"""Tests of docs/how-to/testing.md, on the databases that Django makes for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]
FAST = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"}


@pytest.fixture(
    params=["memory", "memory, immediate", "file", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def database(request, tmp_path):
    """Settings of a database, for each kind that a test may get."""
    if request.param == "postgres":
        name = f"documented_{os.getpid()}"
        return settings.POSTGRES | {"TEST": {"NAME": name}}
    made = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "unused.sqlite3")}
    if request.param == "file":
        return made | {"OPTIONS": FAST, "TEST": {"NAME": str(tmp_path / "test.sqlite3")}}
    return made | ({"OPTIONS": FAST} if request.param == "memory, immediate" else {})


def test_tests_as_documented_pass(database, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "django", "test", "tests.documented.trials", "-v", "2", "--noinput"],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "tests.documented.settings",
            "JOBQUEUE_TEST_DATABASE": json.dumps(database),
            "XDG_RUNTIME_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert "\nOK" in done.stderr
