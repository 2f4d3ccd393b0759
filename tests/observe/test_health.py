"""Tests of the health report, as a view and as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command

from jobqueue.clock import SYSTEM
from jobqueue.testing.contract.harness import draft, put_all
from tests.cli.conftest import PROGRAM, ROOT, settings_of
from tests.conftest import ON_SQLITE
from tests.observe.conftest import TOKEN

#: A database that is out of reach.
AWAY = {"default": {"NAME": "/nowhere/jobs.sqlite3"}, "postgres": {"HOST": "127.0.0.1", "PORT": "1"}}


def checks(answer):
    return {name: check["status"] for name, check in answer.json()["checks"].items()}


def test_a_queue_with_a_worker_and_no_problem_is_healthy(monitor, worker):
    worker()
    answer = monitor.get("/health/")
    assert (answer.status_code, answer.json()["status"], answer.json()["findings"]) == (200, "healthy", [])
    assert checks(answer) == dict.fromkeys(("database", "workers", "queues", "dead_letters"), "healthy")
    assert answer.json()["checks"]["workers"] == {"status": "healthy", "alive": 1, "minimum": 1}
    assert "no-store" in answer.headers["Cache-Control"]


@ON_SQLITE
@pytest.mark.parametrize(
    ("alive", "least", "state", "code"),
    [(0, 0, "healthy", 200), (0, 1, "unhealthy", 503), (1, 2, "degraded", 200), (2, 2, "healthy", 200)],
)
def test_live_workers_are_compared_with_the_minimum(monitor, worker, settings, alive, least, state, code):
    settings.JOBQUEUE = settings.JOBQUEUE | {"MIN_WORKERS": least}
    for number in range(alive):
        worker(str(number))
    answer = monitor.get("/health/")
    assert (answer.status_code, answer.json()["status"]) == (code, state)


@ON_SQLITE
@pytest.mark.parametrize(
    ("dead", "state", "code"), [(1, "degraded", 200), (2, "unhealthy", 503), (3, "unhealthy", 503)]
)
def test_dead_letters_degrade_a_queue_up_to_the_limit(monitor, worker, dead_letter, settings, dead, state, code):
    settings.JOBQUEUE = settings.JOBQUEUE | {"MAX_DEAD_LETTERS": 2}
    worker()
    for _ in range(dead):
        dead_letter()
    answer = monitor.get("/health/")
    assert (answer.status_code, answer.json()["status"]) == (code, state)
    assert answer.json()["checks"]["dead_letters"] == {"status": state, "count": min(dead, 2), "limit": 2}


def test_a_problem_of_a_queue_is_named_by_its_cause(monitor, worker, queue):
    worker(types=("resize_image",))
    put_all(queue, draft("send_welcome", queue="mail", tenant="a secret customer", delay=timedelta(minutes=-30)))
    answer = monitor.get("/health/")
    assert answer.json()["status"] == "degraded"
    assert answer.json()["checks"]["queues"]["causes"] == ["type_not_served"]
    assert answer.json()["findings"] == [
        {"level": "warning", "cause": "type_not_served", "queues": [], "types": ["send_welcome"]}
    ]
    assert answer.json()["checks"]["queues"]["oldest_due_seconds"] >= 0


def test_a_report_names_no_job_tenant_or_host(monitor, worker, dead_letter):
    worker(seen_at=SYSTEM.now() - timedelta(minutes=5), name="lost")
    dead_letter()
    text = monitor.get("/health/").content.decode()
    assert "dead_letters" in text
    for secret in ("a secret customer", "app1", "disk on fire", "lost"):
        assert secret not in text


@ON_SQLITE
@pytest.mark.parametrize("token", ["", "a token of another", TOKEN[:-1], TOKEN + "é"])
def test_a_wrong_token_reads_nothing(monitor, token):
    answer = monitor.get("/health/", token=token)
    assert answer.status_code == 403
    assert "MONITOR_TOKEN" in answer.json()["error"]


@ON_SQLITE
def test_a_token_in_the_url_is_refused(monitor):
    assert monitor.client.get(f"/health/?token={TOKEN}&MONITOR_TOKEN={TOKEN}").status_code == 403


@ON_SQLITE
def test_staff_reads_with_the_permission_to_view_jobs(monitor, databases):
    staff = User.objects.create_user("on call", is_staff=True)
    monitor.client.force_login(staff)
    assert monitor.client.get("/health/").status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_job"))
    assert monitor.client.get("/health/").status_code == 503
    User.objects.filter(pk=staff.pk).update(is_staff=False)
    assert monitor.client.get("/health/").status_code == 403
    User.objects.all().delete()


def from_inside(request):
    """Admit requests from the cluster's own network."""
    return request.META["REMOTE_ADDR"].startswith("10.")


@ON_SQLITE
def test_a_rule_of_the_project_admits(monitor, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"MONITOR_CHECK": "tests.observe.test_health.from_inside"}
    assert monitor.client.get("/health/", REMOTE_ADDR="10.0.0.7").status_code == 503
    assert monitor.client.get("/health/", REMOTE_ADDR="192.0.2.1").status_code == 403


@ON_SQLITE
def test_a_post_is_refused(monitor):
    assert monitor.client.post("/health/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405


def test_the_command_agrees_with_the_view(monitor, worker, dead_letter, capsys):
    worker()
    dead_letter()
    with pytest.raises(SystemExit, match="1"):
        call_command("jobqueue", "health", "--json")
    said, answer = json.loads(capsys.readouterr().out), monitor.get("/health/").json()
    for one in (said, answer):
        del one["now"], one["checks"]["database"]["latency_ms"]
    assert said == answer
    with pytest.raises(SystemExit):
        call_command("jobqueue", "health")
    assert capsys.readouterr().out.splitlines()[0] == "degraded"


def test_a_database_that_is_away_makes_the_queue_unhealthy(alias, queue):
    given = settings_of(alias, **AWAY[alias])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "health", "--json"],
        cwd=ROOT,
        env=os.environ | {"COMMAND_SETTINGS": json.dumps(given)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "")
    said = json.loads(done.stdout)
    assert (said["status"], said["now"]) == ("unhealthy", None)
    assert said["checks"] == {"database": {"status": "unhealthy", "error": "OperationalError"}}
