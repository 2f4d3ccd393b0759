"""Tests of Sentry's check-ins for schedules."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobqueue import tracing
from jobqueue.models import Job, Schedule
from jobqueue.schedules import operation
from jobqueue.schedules.firing import fire_due
from jobqueue.tracing.sentry import check_ins
from tests.app.worker_jobs_traced import traced_failure, traced_work
from tests.tracing.attempts import attempt_all

SQLITE_ALONE = True


@pytest.fixture
def lifecycle():
    """One mode of the SDK: check-ins are the same in both."""
    return "static"


def schedule(clock, name, rule, handler=traced_work, payload=None, **options):
    """Store a schedule, and let its first slot fall due."""
    operation.add(name, operation.read_fields(handler.name, rule, "Europe/Berlin", payload or {}, options))


@pytest.fixture
def clocked(queue, clock):
    """The backend that the public API uses, on a virtual clock."""
    queue.clock = clock
    yield queue
    queue.clock = None


def test_a_slot_checks_in_as_its_job_begins_and_ends(clocked, clock, sentry):
    schedule(clock, "nightly:report", "0 3 * * *", jitter=90)
    clock.advance(timedelta(days=1))
    fire_due(clocked)
    clock.advance(timedelta(minutes=5))
    attempt_all(clocked)
    first, last = sentry.check_ins
    slug = check_ins.slug_of("nightly:report")
    assert [one["status"] for one in (first, last)] == ["in_progress", "ok"]
    assert first["check_in_id"] == last["check_in_id"]
    assert {one["monitor_slug"] for one in (first, last)} == {slug}
    assert last["duration"] >= 0
    assert first["monitor_config"] == {
        "schedule": {"type": "crontab", "value": "0 3 * * *"},
        "timezone": "Europe/Berlin",
        "checkin_margin": 7,
        "max_runtime": 30,
    }


def test_the_attempts_of_a_slot_share_a_check_in(clocked, clock, sentry):
    schedule(clock, "hopeless", "every 2h", traced_failure, {"customer": "a", "word": "b"})
    clock.advance(timedelta(hours=3))
    fire_due(clocked)
    attempt_all(clocked)
    assert [one["status"] for one in sentry.check_ins] == ["in_progress"]
    attempt_all(clocked)
    assert [one["status"] for one in sentry.check_ins] == ["in_progress", "in_progress", "error"]
    assert len({one["check_in_id"] for one in sentry.check_ins}) == 1
    assert sentry.check_ins[0]["monitor_config"]["schedule"] == {"type": "interval", "value": 2, "unit": "hour"}


@pytest.mark.parametrize("rule", ["every 30s", "*/10 * * * * *", "0 0 LW * *", "0 0 * * 1#2", "0 0 * * 5L"])
def test_a_rule_that_sentry_does_not_know_has_no_monitor(clocked, clock, sentry, rule):
    schedule(clock, "unusual", rule)
    assert check_ins.monitor_of(clocked.schedules.get("unusual"), timedelta(hours=1)) is None


@pytest.mark.parametrize(
    ("rule", "line"),
    [("@daily", "0 0 * * *"), ("30 0 3 * * WED", "0 3 * * WED"), ("0 3 * JUL MON-FRI", "0 3 * JUL MON-FRI")],
)
def test_a_rule_becomes_a_line_of_five_fields(clocked, clock, rule, line):
    schedule(clock, "usual", rule)
    found = check_ins.monitor_of(clocked.schedules.get("usual"), timedelta(days=400))
    assert found["config"]["schedule"] == {"type": "crontab", "value": line}
    assert found["config"]["max_runtime"] == 40_320


def test_without_sentry_the_jobs_of_schedules_have_no_context(clocked, clock):
    schedule(clock, "plain", "every 1m")
    clock.advance(timedelta(minutes=2))
    fire_due(clocked)
    assert {one.context for one in Job.objects.all()} == {None}
    assert tracing.context_of_slot(clocked.schedules.get("plain"), timedelta(0)) is None


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("nightly", "nightly"),
        ("Nightly report", r"nightly-report-[0-9a-f]{8}"),
        ("2026", r"2026-[0-9a-f]{8}"),
        ("x" * 100, r"x{41}-[0-9a-f]{8}"),
        ("täglich \ud800", r"t-glich-[0-9a-f]{8}"),
        ("日報", r"schedule-[0-9a-f]{8}"),
    ],
)
def test_the_slug_of_a_name_is_valid_and_its_own(name, slug):
    import re

    assert re.fullmatch(slug, check_ins.slug_of(name))
    assert len(check_ins.slug_of(name)) <= 50


VALID = {
    "slug": "a",
    "config": {
        "schedule": {"type": "crontab", "value": "* * * * *"},
        "timezone": "UTC",
        "checkin_margin": 5,
        "max_runtime": 30,
    },
}


def test_a_valid_monitor_is_read():
    assert check_ins.monitor_in(json.dumps({check_ins.KEY: VALID})) == ("a", VALID["config"])


@pytest.mark.parametrize(
    "change",
    [
        {"slug": "a/../b"},
        {"slug": "a" * 51},
        {"slug": None},
        {"config": None},
        {"config": VALID["config"] | {"max_runtime": 10**30}},
        {"config": VALID["config"] | {"checkin_margin": True}},
        {"config": VALID["config"] | {"timezone": "x" * 500}},
        {"config": VALID["config"] | {"schedule": {"type": "crontab", "value": "* " * 500}}},
        {"config": VALID["config"] | {"schedule": {"type": ["crontab"], "value": 1}}},
        {"config": VALID["config"] | {"owner": "user:1"}},
    ],
)
def test_a_monitor_of_a_foreign_row_is_left_out(change):
    assert check_ins.monitor_in(json.dumps({check_ins.KEY: VALID | change})) is None


def test_a_schedule_of_the_admin_s_run_now_has_no_check_in(clocked, clock, sentry):
    schedule(clock, "by-hand", "0 3 * * *")
    operation.run_now(clocked.schedules.get("by-hand"))
    attempt_all(clocked)
    assert sentry.check_ins == []
    assert Schedule.objects.count() == 1
