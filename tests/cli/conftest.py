"""Fixtures of the commands' tests, which run them in this process or in a process of their own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from jobqueue.models import Worker
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, WorkerRecord
from jobqueue.testing.contract.harness import put, settle, take_one

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import json, os, sys
import django
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(**json.loads(os.environ["COMMAND_SETTINGS"]))
execute_from_command_line(["manage.py", "jobqueue", *sys.argv[1:]])
"""


@dataclass(frozen=True)
class Said:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(queue, alias):
    """Run a subcommand in this process."""

    def command(*words):
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command("jobqueue", *words, stdout=out, stderr=err)
            code = 0
        except SystemExit as end:
            code = end.code
        except CommandError as error:
            code = error.returncode
            err.write(str(error))
        return Said(code, out.getvalue(), err.getvalue())

    yield command
    Worker.objects.using(alias).all().delete()


def settings_of(alias, **changes):
    """Make settings for another process that uses the test's database."""
    database = {
        key: value for key, value in connections[alias].settings_dict.items() if key not in ("TEST", "TIME_ZONE")
    }
    return {
        "DATABASES": {"default": database | {"NAME": str(database["NAME"])} | changes},
        "INSTALLED_APPS": ["jobqueue", "tests.app"],
        "USE_TZ": True,
        "JOBQUEUE": {},
    }


def arguments(alias, *words, env=None, **changes):
    """What subprocess needs to run a subcommand as a user would."""
    given = {"COMMAND_SETTINGS": json.dumps(settings_of(alias, **changes)), "COLUMNS": "100"}
    return {
        "args": [sys.executable, "-c", PROGRAM, *words],
        "cwd": ROOT,
        "env": os.environ | given | (env or {}),
    }


@pytest.fixture
def process(queue, alias):
    """Run a subcommand in a process of its own."""

    def command(*words, given="", **changes):
        done = subprocess.run(
            **arguments(alias, *words, **changes), input=given, capture_output=True, text=True, timeout=60, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return command


@pytest.fixture
def dead_letter(queue):
    """A function that makes a dead letter."""

    def make(job_type="send_welcome", *, message="disk on fire", traceback="", **values):
        put(queue, job_type, priority=1, **values)
        claim = take_one(queue, types=frozenset({job_type}))
        failure = Failure.of(Ending.FAILED, error_class="OSError", message=message, traceback=traceback)
        assert settle(queue, settled(claim, Dead("attempts used up"), failure)) == ()
        return claim.id

    return make


@pytest.fixture
def worker(queue):
    """A function that enlists a worker."""

    def enlist(name="one", **values):
        record = WorkerRecord(
            **{
                "owner": f"host:1:{name}",
                "name": name,
                "host": "host",
                "pid": 1,
                "version": "0.1.0",
                "started_at": queue.now(),
                "seen_at": queue.now(),
                "processes": 1,
                "slots": 10,
                "types": ("send_welcome", "resize_image"),
            }
            | values
        )
        queue.workers.enlist(record)
        return record

    return enlist
