"""Tests of the channels: what each sends, and what it says when that fails."""

from __future__ import annotations

import json
import logging

import pytest
from django.core import mail

from jobqueue import signals
from jobqueue.channels.job import Delivery, deliver
from jobqueue.channels.news import read
from jobqueue.channels.web import send_to_pagerduty
from jobqueue.contrib.webhooks import signing
from jobqueue.errors import Cancel, Discard, Retry
from jobqueue.policy.redaction import REDACTED
from jobqueue.records.alert import AlertState, News
from tests.contrib.conftest import attempt
from tests.contrib.receiver import hang_up, receiving

#: Django 6.1 asks for MAILERS, which earlier releases don't have.
pytestmark = pytest.mark.filterwarnings("ignore:.*default mailer")
SECRET = signing.new_secret()
ALERT = {
    "id": "01J8ZQ4Y3M6V7K2N5P8R1T4W6X",
    "key": "queue_deep:12",
    "cause": "queue_deep",
    "level": "error",
    "sentence": "The queue <!channel> *mail* is deep: 1,200 jobs are due.",
    "advice": "Start more workers.",
    "measured": 1_200.0,
    "threshold": 1_000.0,
    "page": "queued_jobs",
    "queue": "mail",
    "examples": ["7", "8"],
    "since": "2026-01-16T12:00:00.000000Z",
    "fired_at": "2026-01-16T12:01:00.000000Z",
    "resolved_at": None,
}
RESOLVED = ALERT | {"resolved_at": "2026-01-16T13:00:00.000000Z"}
SITE = "https://shop.example.com"
LINK = f"{SITE}/admin/jobqueue/job/?q=status%3Aqueued+queue%3Amail"


@pytest.fixture
def receiver():
    with receiving() as found:
        yield found


@pytest.fixture
def send(configure, settings):
    """A function that delivers news by a channel, and returns what it answered."""

    def call(channel, *alerts, kind=News.FIRED, number=1, name="ops", **jobqueue):
        configure(channels={"ops": channel}, site=SITE)
        settings.JOBQUEUE = settings.JOBQUEUE | {"WEBHOOK_NETWORKS": ["127.0.0.0/8"]} | jobqueue
        delivery = Delivery(channel=name, news=kind, alerts=list(alerts or [ALERT]))
        return deliver(delivery, attempt(number=number))["answer"]

    return call


def body_of(receiver):
    return json.loads(receiver.requests[-1].body)


def test_the_log_has_a_line_for_each_alert(send, caplog):
    with caplog.at_level(logging.INFO):
        assert send({"via": "log"}, ALERT, ALERT | {"level": "warning"}) == "written to the log"
        send({"via": "log"}, RESOLVED, kind=News.RESOLVED)
    assert [one.levelname for one in caplog.records] == ["ERROR", "WARNING", "INFO"]
    assert caplog.records[0].getMessage() == f"Alert fired: {ALERT['sentence']}"


def test_an_e_mail_says_it_all(send):
    addresses = ["ops@example.com", "night@example.com"]
    told = send({"via": "email", "addresses": addresses, "sender": "queue@example.com"}, ALERT, ALERT)
    assert told == "sent to 2 addresses"
    (sent,) = mail.outbox
    assert (sent.to, sent.from_email) == (addresses, "queue@example.com")
    assert sent.subject == f"[jobqueue] error: {ALERT['sentence']} (and 1 more)"
    for part in ("Since: 2026-01-16 12:00:00 UTC", "Measured: 1,200, alerts above 1,000", "Start more workers."):
        assert part in sent.body
    assert f"Examples: 7, 8\n{LINK}\n" in sent.body


def test_a_hostile_sentence_is_one_line_of_a_subject(send):
    send({"via": "email", "addresses": ["ops@example.com"]}, ALERT | {"sentence": "x\r\nBcc: all@example.com" * 50})
    assert "\n" not in mail.outbox[0].subject
    assert len(mail.outbox[0].subject) <= 200


def test_a_webhook_is_signed(send, receiver, monkeypatch):
    monkeypatch.setenv("ALERT_SECRET", SECRET)
    assert send({"via": "webhook", "url": receiver.url(), "secret": "env:ALERT_SECRET"}) == "200 thanks"
    (request,) = receiver.requests
    assert signing.verify(SECRET, request.headers, request.body) == attempt().job_id
    told = body_of(receiver)
    assert (told["type"], told["data"]["level"]) == ("alert.fired", "error")
    assert told["data"]["alerts"] == [ALERT | {"link": LINK}]


def test_slack_gets_blocks_without_marks_of_others(send, receiver):
    send({"via": "slack", "url": receiver.url()}, ALERT, RESOLVED)
    told = body_of(receiver)
    first, second = (one["text"]["text"] for one in told["blocks"])
    assert "<!channel>" not in json.dumps(told)
    assert f"<{LINK}|Open the admin>" in first
    assert "Resolved: 2026-01-16 13:00:00 UTC" in second


def test_teams_gets_a_card(send, receiver):
    send({"via": "teams", "url": receiver.url()})
    (attachment,) = body_of(receiver)["attachments"]
    card = attachment["content"]
    assert (attachment["contentType"], card["type"]) == ("application/vnd.microsoft.card.adaptive", "AdaptiveCard")
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open the admin", "url": LINK}]
    assert "\\*mail\\*" in card["body"][0]["text"]


def test_pagerduty_gets_an_event_for_each_alert(send, receiver, monkeypatch):
    monkeypatch.setenv("PAGER", "r" * 32)
    channel = {"via": "pagerduty", "routing_key": "env:PAGER", "url": receiver.url()}
    receiver.say((202, {}, b"{}"))
    send(channel, ALERT, ALERT | {"key": "overdue:7"})
    send(channel, RESOLVED, kind=News.RESOLVED)
    events = [json.loads(one.body) for one in receiver.requests]
    assert [(one["event_action"], one["dedup_key"]) for one in events] == [
        ("trigger", "jobqueue/queue_deep:12"),
        ("trigger", "jobqueue/overdue:7"),
        ("resolve", "jobqueue/queue_deep:12"),
    ]
    assert events[0]["routing_key"] == "r" * 32
    assert events[0]["payload"]["severity"] == "error"
    assert events[0]["links"] == [{"href": LINK, "text": "Open the admin"}]


def test_pagerduty_gets_no_late_event_of_an_alert_that_is_over(configure, settings, receiver, monkeypatch):
    settings.JOBQUEUE = settings.JOBQUEUE | {"WEBHOOK_NETWORKS": ["127.0.0.0/8"]}
    channel = type("Channel", (), {"options": {"url": receiver.url(), "routing_key": "k"}})
    over = type("Alerts", (), {"get": lambda _self, _key: type("Over", (), {"state": AlertState.RESOLVED})})()
    monkeypatch.setattr("jobqueue.backends.current", lambda: type("Backend", (), {"alerts": over}))
    told = send_to_pagerduty(channel, read(News.FIRED, [ALERT], SITE), attempt_of(2))
    assert told == "nothing sent: the alerts are over"
    assert receiver.requests == []


def attempt_of(number):
    from_context = attempt(number=number)
    return type("Attempt", (), {"id": from_context.job_id, "number": number})


CALLS = []


def note(kind, alerts):
    """Keep what was told."""
    CALLS.append((kind, [one["key"] for one in alerts]))


def test_a_function_is_called(send):
    CALLS.clear()
    assert send({"via": "function", "function": "tests.alerts.test_channels.note"}) == "called"
    assert CALLS == [("fired", ["queue_deep:12"])]


def test_receivers_of_signals_are_called_whatever_others_raise(send):
    got = []

    def fail(**_facts):
        raise RuntimeError("no")

    def receive(alert, news, **_facts):
        got.append((alert["key"], news))

    signals.alert_resolved.connect(fail)
    signals.alert_resolved.connect(receive)
    try:
        told = send({"via": "log"}, RESOLVED, kind=News.RESOLVED, name=":signal")
    finally:
        signals.alert_resolved.disconnect(fail)
        signals.alert_resolved.disconnect(receive)
    assert got == [("queue_deep:12", "resolved")]
    assert told == "2 calls of receivers, 1 of which failed"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((503, {"Retry-After": "9"}, b"later"), Retry, "answered 503. later"),
        ((404, {}, b"no_service"), Discard, "answered 404. no_service"),
        (hang_up, Retry, "The exchange failed"),
    ],
    ids=["busy", "gone", "mute"],
)
def test_a_channel_that_fails_says_how(send, receiver, answer, error, words):
    receiver.say(answer)
    with pytest.raises(error, match=words) as raised:
        send({"via": "slack", "url": receiver.url("/services/secret-part")})
    assert "secret-part" not in str(raised.value)


def test_a_channel_that_cannot_be_reached_by_rule_is_not_tried_again(send):
    with pytest.raises(Discard, match="WEBHOOK_NETWORKS"):
        send({"via": "slack", "url": "http://127.0.0.1:9/"}, WEBHOOK_NETWORKS=[])


def test_a_channel_that_left_the_settings_cancels_its_deliveries(send):
    with pytest.raises(Cancel, match=r"no channel 'obs'. Did you mean 'ops'\?"):
        send({"via": "log"}, name="obs")


def test_a_missing_variable_is_named(send, monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(Retry, match="NOT_SET"):
        send({"via": "slack", "url": "env:NOT_SET"})


@pytest.mark.parametrize("given", [{}, {"facts": 7}, {"sentence": ["x"], "examples": "7", "since": 9, "page": "job"}])
def test_any_payload_of_others_is_read(send, given):
    assert send({"via": "log"}, given) == "written to the log"
    assert read(News.FIRED, [given], SITE).text()
    assert REDACTED not in read(News.FIRED, [given], SITE).title
