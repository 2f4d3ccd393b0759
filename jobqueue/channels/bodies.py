"""The bodies that services expect: a plain document, Slack's blocks, a card of Teams, an event of PagerDuty."""

from __future__ import annotations

from typing import Any

from jobqueue.channels.news import AlertNews, OneAlert
from jobqueue.records.alert import News

#: What the services accept.
SLACK_TEXT, PAGERDUTY_SUMMARY = 2_900, 1_000
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]()#~"})
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def webhook(news: AlertNews) -> dict[str, Any]:
    """Return the event ``alert.fired``, ``alert.resolved``, ``alert.reminder`` or ``alert.test``."""
    return {
        "type": f"alert.{news.kind.value}",
        "data": {"level": news.level, "title": news.title, "alerts": [dict(one.given) for one in news.alerts]},
    }


def slack(news: AlertNews) -> dict[str, Any]:
    """Return a message with a block for each alert."""
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": _slack_text(one)[:SLACK_TEXT]}} for one in news.alerts
    ]
    return {"text": news.title.translate(_SLACK), "blocks": blocks}


def _slack_text(one: OneAlert) -> str:
    lines = [f"*{_bare(one.title)}*", *(f"{label}: {_bare(text)}" for label, text in one.details)]
    if one.link.startswith("http"):
        lines.append(f"<{one.link.translate(_SLACK).replace('|', '%7C')}|Open the admin>")
    return "\n".join(lines)


def _bare(text: str) -> str:
    """Return text in which Slack finds no marks, links or mentions."""
    return "".join(f"{char}\N{ZERO WIDTH SPACE}" if char in "*_~`" else char for char in text).translate(_SLACK)


def teams(news: AlertNews) -> dict[str, Any]:
    """Return a message with one adaptive card."""
    body: list[dict[str, Any]] = [
        {"type": "TextBlock", "text": _card_text(news.title), "weight": "bolder", "size": "medium", "wrap": True}
    ]
    actions: list[dict[str, str]] = []
    for one in news.alerts:
        facts = [{"title": label, "value": _card_text(text)} for label, text in one.details]
        body.append({"type": "TextBlock", "text": _card_text(one.title), "wrap": True, "separator": True})
        body.append({"type": "FactSet", "facts": facts})
        if one.link.startswith("http") and len(actions) < 5:
            actions.append({"type": "Action.OpenUrl", "title": "Open the admin", "url": one.link})
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _card_text(text: str) -> str:
    return text.translate(_MARKDOWN)


def pagerduty(one: OneAlert, kind: News, routing_key: str) -> dict[str, Any]:
    """Return an event. The problem's key makes one incident of all events about it."""
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if kind is News.RESOLVED else "trigger",
        "dedup_key": f"jobqueue/{one.key}"[:255],
    }
    if kind is News.RESOLVED:
        return event
    return event | {
        "payload": {
            "summary": one.facts.sentence[:PAGERDUTY_SUMMARY],
            "source": "jobqueue",
            "severity": "error" if one.facts.level == "error" else "warning",
            "component": one.facts.queue or "jobqueue",
            "group": one.facts.type or one.facts.queue or "jobqueue",
            "class": one.facts.cause,
            "custom_details": dict(one.details),
        },
        "links": [{"href": one.link, "text": "Open the admin"}] if one.link.startswith("http") else [],
    }
