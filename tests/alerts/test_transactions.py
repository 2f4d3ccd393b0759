"""Tests on real databases: a kill at the worst moment, a critical dead letter, a channel that fails, and commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from jobqueue.alert_settings import DELIVERY_QUEUE, DELIVERY_TYPE
from jobqueue.alerts import evaluate
from jobqueue.models import Alert, Job, Silence
from jobqueue.testing.contract.harness import bury, put, take_one
from tests.cli.conftest import settings_of
from tests.conftest import ON_SQLITE
from tests.contrib.receiver import receiving
from tests.worker.harness import until

AT_ONCE = {"rules": [{"rule": "dead_letters", "above": 0, "for": 0, "resolve_after": 0}]}
KILLED_BETWEEN = """
import json, os, signal
import django
from django.conf import settings

settings.configure(**json.loads(os.environ["COMMAND_SETTINGS"]))
django.setup()

from jobqueue import backends
from jobqueue.alerts import evaluate
from jobqueue.backends.sql.drafts import Drafts

Drafts.admit_all = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
evaluate(backends.current())
"""


@pytest.fixture
def alerts(settings, alias):
    """A function that sets ``ALERTS``."""

    def configure(**values):
        given = {"channels": {"ops": {"via": "log"}}, **AT_ONCE} | values
        settings.JOBQUEUE = {"DATABASE": alias, "ALERTS": given}
        return given

    return configure


def dead(queue, job_type="send_welcome"):
    job_id = put(queue, job_type)
    bury(queue, take_one(queue, types=frozenset({job_type})))
    return job_id


def deliveries(alias):
    return Job.objects.using(alias).filter(type=DELIVERY_TYPE).count()


def test_a_kill_between_the_alert_and_its_delivery_loses_and_doubles_nothing(queue, alias, alerts):
    dead(queue)
    given = settings_of(alias) | {"JOBQUEUE": {"ALERTS": alerts()}}
    environment = os.environ | {"COMMAND_SETTINGS": json.dumps(given, default=str)}
    ended = subprocess.run([sys.executable, "-c", KILLED_BETWEEN], env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert (Alert.objects.using(alias).count(), deliveries(alias)) == (0, 0)
    assert len(evaluate(queue).told) == 1
    assert evaluate(queue).told == ()
    assert (Alert.objects.using(alias).count(), deliveries(alias)) == (1, 1)


def test_a_critical_dead_letter_is_told_within_seconds_and_a_failing_channel_is_tried_again(
    queue, alias, start_worker, alerts
):
    with receiving() as receiver:
        receiver.say((503, {"Retry-After": "0"}, b"busy"), (200, {}, b"ok"))
        given = {"channels": {"chat": {"via": "slack", "url": receiver.url()}}}
        jobqueue = {"ALERTS": given, "WEBHOOK_NETWORKS": ["127.0.0.0/8"]}
        start_worker("--poll-interval", "0.2", jobqueue=jobqueue, apps=("tests.alerts",))
        until(lambda: queue.duties.all() and any(one.name == "alerts" for one in queue.duties.all()), 20)
        job_id = put(queue, "settle_account", payload="{}")
        until(lambda: len(receiver.requests) == 2, 20, lambda: f"two requests, not {len(receiver.requests)}")
        assert job_id in json.loads(receiver.requests[1].body)["text"]
        until(lambda: Job.objects.using(alias).filter(type=DELIVERY_TYPE, status="completed").count() == 1)
    delivery = Job.objects.using(alias).get(type=DELIVERY_TYPE)
    assert (delivery.queue, delivery.attempts, delivery.result) == (DELIVERY_QUEUE, 2, {"answer": "200 ok"})


@ON_SQLITE
def test_a_worker_without_the_setting_does_nothing_for_alerts(queue, alias, start_worker):
    start_worker()
    until(lambda: [one for one in queue.duties.all() if one.name == "sample"], 20)
    assert [one for one in queue.duties.all() if one.name == "alerts"] == []


# Commands


def test_the_command_lists_silences_and_tests(queue, alias, alerts, run):
    alerts()
    assert run("alerts").code == 0
    dead(queue)
    assert run("alerts", "evaluate").code == 0
    shown = run("alerts", "--json")
    (one,) = shown.json["alerts"]
    assert (shown.code, one["state"], one["facts"]["cause"]) == (2, "firing", "dead_letters")
    assert run("alerts").code == 2
    assert run("alerts", "silence", one["id"], "--for", "2h", "--reason", "we know").code == 0
    assert run("alerts", "--json").json["alerts"][0]["silence"]["reason"] == "we know"
    assert run("alerts").code == 0
    assert run("alerts", "unsilence", one["key"]).code == 0
    assert run("alerts").code == 2
    assert "no longer" not in run("alerts", "unsilence", "queue_deep").err
    assert run("alerts", "silence", "slow", "--reason", "a rule").code == 0
    assert Silence.objects.using(alias).get().key == "slow"


def test_the_command_says_what_is_wrong(queue, alerts, run):
    alerts()
    for words, said in (
        (("silence",), "Name what to silence"),
        (("silence", "queue_depp", "--reason", "x"), "'queue_deep'"),
        (("silence", "slow"), "--reason"),
        (("test", "obs"), "Did you mean 'ops'?"),
    ):
        told = run("alerts", *words)
        assert told.code in (2, 3)
        assert said in told.err


def test_a_channel_is_tested_at_once(queue, alerts, run):
    with receiving() as receiver:
        alerts(channels={"chat": {"via": "slack", "url": receiver.url()}})
        told = run("alerts", "test", "chat")
        assert (told.code, "WEBHOOK_NETWORKS" in told.err) == (3, True)
    alerts()
    assert "written to the log" in run("alerts", "test", "ops").err
