"""The channels that post to a URL: a signed webhook, Slack, Teams and PagerDuty."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from jobqueue import backends, conf
from jobqueue.channels import bodies
from jobqueue.channels.news import AlertNews, DeliveryAttempt
from jobqueue.clock import SYSTEM
from jobqueue.contrib.webhooks import signing
from jobqueue.contrib.webhooks.addresses import AddressRefused, target_of
from jobqueue.contrib.webhooks.sending import Answer, Unreachable, post
from jobqueue.contrib.webhooks.verdicts import DeliveryVerdict, delay_of, reason_of, verdict_of
from jobqueue.errors import Discard, Retry
from jobqueue.ids import portable
from jobqueue.policy.alerts.settings import ENVIRONMENT, PAGERDUTY, Channel
from jobqueue.records.alert import AlertState, News
from jobqueue.version import __version__


def send_signed(channel: Channel, news: AlertNews, attempt: DeliveryAttempt) -> str:
    """Post the news as JSON, signed as ``contrib.webhooks`` signs."""
    body = _dumped(bodies.webhook(news))
    delivery, timestamp = portable(attempt.id), int(SYSTEM.now().timestamp())
    try:
        signed = signing.headers([channel.options["secret"]], delivery, timestamp, body)
    except signing.InvalidSecret as error:
        raise Discard(str(error)) from error
    return _post(channel.options["url"], body, signed)


def send_to_slack(channel: Channel, news: AlertNews, _attempt: DeliveryAttempt) -> str:
    """Post a message in the form of Slack's incoming webhooks."""
    return _post(channel.options["url"], _dumped(bodies.slack(news)))


def send_to_teams(channel: Channel, news: AlertNews, _attempt: DeliveryAttempt) -> str:
    """Post an adaptive card in the form of the workflows of Teams."""
    return _post(channel.options["url"], _dumped(bodies.teams(news)))


def send_to_pagerduty(channel: Channel, news: AlertNews, attempt: DeliveryAttempt) -> str:
    """Post one event for each alert. Its key lets a repetition change nothing."""
    url, key = channel.options.get("url", PAGERDUTY), _resolved(channel.options["routing_key"])
    answers = [
        _post(url, _dumped(bodies.pagerduty(one, news.kind, key)))
        for one in news.alerts
        if not (_is_repeated(news, attempt) and _is_over(one.id))
    ]
    return answers[-1] if answers else "nothing sent: the alerts are over"


def _is_repeated(news: AlertNews, attempt: DeliveryAttempt) -> bool:
    return news.kind in (News.FIRED, News.REMINDER) and attempt.number > 1


def _is_over(alert_id: str) -> bool:
    """Return whether an alert has ended since. An event that is late would open its incident again."""
    found = backends.current().alerts.get(alert_id)
    return found is not None and found.state is AlertState.RESOLVED


def _dumped(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), sort_keys=True).encode()


def _resolved(value: str) -> str:
    """Return a value, or what the environment has for it. An ``env:`` value never gets into a message."""
    if not value.startswith(ENVIRONMENT):
        return value
    name = value.removeprefix(ENVIRONMENT)
    if not os.environ.get(name):
        raise Retry(None, f"The environment variable {name} of the worker, which the channel needs, is not set.")
    return os.environ[name]


def _post(url: str, body: bytes, headers: Mapping[str, str] | None = None) -> str:
    """Post a body, and return the answer. Raise Retry if another attempt may help, and Discard otherwise."""
    networks: Iterable[str] = conf.get("WEBHOOK_NETWORKS")
    sent = {"Content-Type": "application/json", "User-Agent": f"django-jobqueue/{__version__}", **(headers or {})}
    try:
        answer = post(
            target_of(_resolved(url)),
            sent,
            body,
            networks=networks,
            timeout=conf.get("WEBHOOK_TIMEOUT"),
            most=conf.get("WEBHOOK_ANSWER_BYTES"),
        )
    except AddressRefused as error:
        raise Discard(str(error)) from error
    except Unreachable as error:
        raise Retry(None, str(error)) from error
    return _judged(answer)


def _judged(answer: Answer) -> str:
    verdict = verdict_of(answer.status)
    if verdict is DeliveryVerdict.DELIVERED:
        return f"{answer.status} {answer.text}".strip()[:500]
    reason = f"{reason_of(answer.status)} {answer.text}".strip()[:500]
    if verdict is DeliveryVerdict.AGAIN:
        raise Retry(delay_of(answer.retry_after), reason)
    raise Discard(reason)
