"""Tests of ``jobqueue schedules``."""

from __future__ import annotations

import pytest

from jobqueue.models import Schedule
from jobqueue.schedules import operation

pytestmark = [pytest.mark.parametrize("alias", ["default"], indirect=True), pytest.mark.sqlite]


@pytest.fixture
def nightly(queue):
    """A schedule at 03:00 in Kolkata."""
    fields = operation.read_fields("send_welcome", "0 3 * * *", "Asia/Kolkata", {"user_id": 7}, {})
    return operation.add("nightly", fields)


def test_schedules_are_listed(run, nightly):
    assert run("schedules").code == 0
    assert "nightly\tactive\t0 3 * * *\tAsia/Kolkata" in run("schedules").out
    (one,) = run("schedules", "--json").json["schedules"]
    assert (one["state"], one["in_words"], one["next_at"][11:19]) == ("active", "at 03:00 every day", "21:30:00")


def test_trouble_is_said_and_changes_the_exit_code(run, queue, nightly):
    queue.schedules.change(nightly, trouble="the rule is wrong")
    said = run("schedules")
    assert (said.code, "nightly: the rule is wrong" in said.err) == (1, True)


def test_the_next_slots_are_in_the_zone_of_the_schedule(run, nightly):
    lines = run("schedules", "next", "nightly", "--count", "3").out.splitlines()
    assert [line[-14:] for line in lines] == ["03:00:00+05:30"] * 3


def test_one_is_paused_resumed_run_shown_and_removed(run, nightly):
    assert "is paused" in run("schedules", "pause", "nightly", "--reason", "a storm").err
    assert "was already paused" in run("schedules", "pause", "nightly").err
    assert run("schedules", "resume", nightly.id, "--json").json["schedules"] == [{"name": "nightly", "changed": True}]
    (job,) = run("schedules", "run-now", "nightly", "--json").json["schedules"]
    (shown,) = run("schedules", "show", "nightly", "--json").json["schedules"]
    assert (shown["last_runs"][0]["job"], shown["success_rate"], len(shown["next_slots"])) == (job["job"], None, 10)
    assert "in words: at 03:00 every day" in run("schedules", "show", "nightly").out
    assert run("schedules", "remove", "nightly").code == 0
    assert run("schedules", "sync").code == 0


def test_an_unknown_name_is_refused_with_the_nearest(run, nightly):
    said = run("schedules", "pause", "nigthly")
    assert (said.code, "Did you mean 'nightly'?" in said.err) == (3, True)
    assert operation.find("nightly").paused_at is None


def test_an_action_without_a_name_is_refused(run):
    assert run("schedules", "pause").code == 2


def test_secrets_of_a_payload_are_redacted(run, nightly):
    Schedule.objects.filter(pk=nightly.id).update(
        payload={"password": "hunter2222"}, declared={"payload": {"password": "swordfish"}}
    )
    for given in (["--json"], ["show", "nightly"], ["show", "nightly", "--json"]):
        said = run("schedules", *given)
        assert "[redacted]" in said.out
        assert "hunter2222" not in said.out
        assert "swordfish" not in said.out
