"""Tests of alerts in the admin: the list, an alert's page with what channels answered, and silences."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from jobqueue.alert_settings import DELIVERY_TYPE
from jobqueue.alerts import evaluate
from jobqueue.alerts.messages import document
from jobqueue.channels import job as _delivery  # noqa: F401 - registers the type of the deliveries
from jobqueue.channels.news import read
from jobqueue.models import Alert, Job
from jobqueue.policy.settling import completed
from jobqueue.records.alert import News
from jobqueue.testing.contract.harness import bury, put, settle, take_one
from tests.attacks.test_markup import HOSTILE

ONCE = pytest.mark.parametrize("alias", ["default"], indirect=True)
pytestmark = [ONCE, pytest.mark.sqlite]
RULES = [{"rule": "dead_letters", "above": 0, "for": 0, "type": "send_welcome"}]


@pytest.fixture
def alert(queue, settings):
    """An alert that fires, and of which a channel was told."""
    settings.JOBQUEUE = {"ALERTS": {"channels": {"ops": {"via": "log"}}, "rules": RULES}}
    put(queue, "send_welcome")
    bury(queue, take_one(queue, types=frozenset({"send_welcome"})))
    evaluate(queue)
    (found,) = [one for one in queue.alerts.open() if one.told_at]
    return found


def address(name, *args):
    return reverse(f"admin:jobqueue_alert_{name}", args=args)


def text(answer):
    return answer.content.decode()


def test_the_list_has_what_fires_and_says_if_nothing_does(alert, sign_in):
    keeper = sign_in("view_job")
    shown = text(keeper.client.get(address("changelist")))
    assert "1 dead letter waits for a decision." in shown
    assert address("change", alert.id) in shown
    assert keeper.client.get(address("live")).json()["parts"]["firing"]["html"] in shown


def test_without_the_setting_the_list_says_that_alerts_are_off(queue, sign_in):
    assert "Alerts are off" in text(sign_in("view_job").client.get(address("changelist")))


def test_the_page_shows_what_a_channel_answered_and_leads_on(alert, queue, sign_in):
    claim = take_one(queue, types=frozenset({DELIVERY_TYPE}))
    settle(queue, completed(claim, result='{"answer": "written to the log"}'))
    shown = text(sign_in("view_job").client.get(address("change", alert.id)))
    assert "written to the log" in shown
    assert f'href="{reverse("admin:jobqueue_deadletter_changelist")}?of=send_welcome"' in shown
    assert alert.facts.examples[0] in shown
    assert address("silence", alert.id) not in shown


def test_a_silence_needs_its_permission_and_a_reason(alert, queue, sign_in):
    silence = address("silence", alert.id)
    assert sign_in("view_job").client.post(silence, {"amount": "2", "unit": "hours", "why": "x"}).status_code == 403
    keeper = sign_in("view_job", "silence_alert")
    refused = keeper.client.post(silence, {"amount": "2", "unit": "hours", "why": ""})
    assert (refused.status_code, queue.alerts.silences()) == (200, [])
    shown = keeper.client.post(silence, {"amount": "2", "unit": "hours", "why": "we know"}, follow=True)
    assert "we know" in text(shown)
    (one,) = queue.alerts.silences()
    assert (one.key, one.author) == (alert.key, keeper.user.get_username())
    assert timedelta(minutes=119) < one.until - queue.now() <= timedelta(hours=2)
    assert "we know" in LogEntry.objects.get().change_message
    keeper.client.post(address("unsilence", alert.id), {"why": ""})
    assert queue.alerts.silences() == []
    whole = {"amount": "1", "unit": "days", "whole_rule": "on", "why": "a migration"}
    keeper.client.post(silence, whole)
    assert [one.key for one in queue.alerts.silences()] == ["dead_letters"]


def test_it_is_three_clicks_from_an_alert_to_all_like_this_retried_slowly(alert, sign_in):
    keeper = sign_in("view_job", "retry_job")
    groups = keeper.client.get(read(News.FIRED, [document(alert)], "").alerts[0].link)
    (group,) = groups.context["found"]
    asked = keeper.client.post(group.retry_address, follow=True)
    assert "per_minute" in asked.context["form"].fields
    done = keeper.agree(asked, per_minute="60", why="the provider is back")
    assert done.status_code == 200
    assert Job.objects.get(pk=alert.facts.examples[0]).status == "queued"


@pytest.mark.parametrize("name", ["change", "silence", "unsilence"])
@pytest.mark.parametrize("alert_id", ["nothing", "a_00b"])
def test_an_alert_that_is_gone_leads_to_the_list(queue, sign_in, name, alert_id):
    answer = sign_in("view_job", "silence_alert").client.get(address(name, alert_id))
    assert (answer.status_code, answer["Location"]) == (302, address("changelist"))


def test_foreign_rows_are_shown_as_text(queue, sign_in):
    script = HOSTILE[0]
    now = queue.now()
    facts = {"cause": script, "sentence": script, "page": script, "examples": [script, 7], "measured": "x"}
    moments = {"began_at": now, "seen_at": now}
    Alert.objects.create(
        id="x", key=script[:100], state="firing", level=2**31 - 1, facts=facts, sent=[7, ["a"]], **moments
    )
    Alert.objects.create(id="y", key="y", state="firing", level=-9, facts=[1], sent={}, **moments)
    keeper = sign_in("view_job", "silence_alert")
    for one in (address("changelist"), address("change", "x"), address("change", "y"), address("silence", "x")):
        answer = keeper.client.get(one)
        assert answer.status_code == 200
        assert script not in text(answer)
