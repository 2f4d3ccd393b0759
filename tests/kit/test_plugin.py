"""Tests of the pytest plugin in projects of its users."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.kit.running import ROOT, pytest_in

TRIALS = Path(__file__).with_name("trials.py")
FAST = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"}
PLAIN = """
import sys

def test_nothing_is_loaded():
    assert "pytest_jobqueue" in sys.modules
    assert not {"jobqueue", "django", "pydantic"} & sys.modules.keys()
"""


def test_a_project_that_does_not_use_it_pays_nothing(tmp_path):
    (tmp_path / "test_plain.py").write_text(PLAIN)
    done = pytest_in(tmp_path, "-p", "no:django", "-p", "pytest_jobqueue", "-q")
    assert done.returncode == 0, done.stdout


def test_the_package_for_tests_imports_nothing_of_pytest():
    script = "import django; django.setup(); import jobqueue.testing, sys; assert 'pytest' not in sys.modules"
    told = {"DJANGO_SETTINGS_MODULE": "example_project.settings"}
    subprocess.run([sys.executable, "-c", script], env=os.environ | told, cwd=TRIALS.parents[2], check=True, timeout=60)


@pytest.fixture(params=["memory", "file", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request, tmp_path):
    """Settings of a database, for each kind that a test may get."""
    if request.param == "postgres":
        return settings.POSTGRES | {"TEST": {"NAME": f"plugin_{os.getpid()}"}}
    made = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "unused.sqlite3")}
    return made | (
        {"OPTIONS": FAST, "TEST": {"NAME": str(tmp_path / "test.sqlite3")}} if request.param == "file" else {}
    )


def test_the_fixtures_work_in_a_project_and_beside_each_other(database, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(TRIALS, project / "test_trials.py")
    in_memory = "TEST" not in database
    done = pytest_in(
        project,
        *("-p", "pytest_jobqueue", "-W", "error"),
        *("-n", "0" if in_memory else "2"),
        DJANGO_SETTINGS_MODULE="tests.documented.settings",
        JOBQUEUE_TEST_DATABASE=json.dumps(database),
        JOBQUEUE_TEST_MEMORY=str(int(in_memory)),
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tools_can_be_imported_before_django_is_set_up():
    script = "import jobqueue.testing"
    without = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=without, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
