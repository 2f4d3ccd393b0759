"""Tests of real processes that enqueue at the same moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connections

from jobqueue.models import Job

ROOT = Path(__file__).resolve().parents[2]

PRODUCER = """
import json, os, sys
import django
from django.conf import settings

settings.configure(**json.loads(os.environ["PRODUCER_SETTINGS"]))
django.setup()

from tests.app.jobs import send_welcome

print("ready", flush=True)
sys.stdin.readline()
for turn in range(20):
    receipt = send_welcome.using(idempotency_key=f"welcome-{turn}").enqueue(user_id=7)
    print(json.dumps([turn, receipt.id, receipt.created]), flush=True)
"""


def _settings_of(alias):
    database = {
        key: value for key, value in connections[alias].settings_dict.items() if key not in ("TEST", "TIME_ZONE")
    }
    return {
        "DATABASES": {"default": database | {"NAME": str(database["NAME"])}},
        "INSTALLED_APPS": ["jobqueue", "tests.app"],
        "USE_TZ": True,
        "JOBQUEUE": {},
    }


def _start(alias):
    return subprocess.Popen(
        [sys.executable, "-c", PRODUCER],
        cwd=ROOT,
        env=os.environ | {"PRODUCER_SETTINGS": json.dumps(_settings_of(alias))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(240)
def test_eight_processes_with_the_same_keys_make_one_job_each(alias):
    producers = [_start(alias) for _ in range(8)]
    try:
        for producer in producers:
            assert producer.stdout.readline() == "ready\n"
        for producer in producers:
            producer.stdin.write("go\n")
            producer.stdin.flush()
        answers = [
            json.loads(line)
            for producer in producers
            for line in producer.communicate(timeout=200)[0].split("\n")
            if line
        ]
    finally:
        for producer in producers:
            producer.kill()
            producer.wait()
    assert [producer.returncode for producer in producers] == [0] * 8
    stored = dict(Job.objects.using(alias).values_list("idempotency_key", "id"))
    assert len(stored) == 20
    assert len(answers) == 8 * 20
    for turn in range(20):
        mine = [(job_id, created) for number, job_id, created in answers if number == turn]
        assert {job_id for job_id, _ in mine} == {stored[f"welcome-{turn}"]}
        assert [created for _, created in mine].count(True) == 1
