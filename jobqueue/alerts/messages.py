"""The messages about alerts that changed together, and the jobs that deliver them: one for each channel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from jobqueue import signals
from jobqueue.alert_settings import DELIVERY_TYPE, alert_settings
from jobqueue.clock import to_text
from jobqueue.handlers.registry import registry
from jobqueue.policy.alerts.settings import Channel
from jobqueue.records import Draft
from jobqueue.records.alert import AlertChange, AlertRecord, News, SentTo

#: The name under which receivers of signals get messages. No channel has it, because of its colon.
SIGNAL = ":signal"


@dataclass(frozen=True, slots=True)
class Told:
    """Changes that name their deliveries, and the jobs of these."""

    changes: tuple[AlertChange, ...]
    drafts: tuple[Draft, ...] = ()


def with_deliveries(changes: Iterable[AlertChange]) -> Told:
    """Make one job for each channel and kind of news."""
    found, drafts = list(changes), list[Draft]()
    if not any(one.news for one in found):
        return Told(tuple(found))
    for channel in (*alert_settings().channels, *_receivers()):
        for news in (News.FIRED, News.RESOLVED, News.REMINDER):
            places = [place for place, one in enumerate(found) if one.news is news and _wants(channel, one)]
            alerts = [after for place in places if (after := found[place].after)]
            if not alerts:
                continue
            draft = draft_of(channel.name, news, alerts)
            drafts.append(draft)
            for place, after in zip(places, alerts, strict=True):
                sent = (*after.sent, SentTo(channel.name, news.value, draft.id))
                found[place] = replace(found[place], after=replace(after, sent=sent))
    return Told(tuple(found), tuple(drafts))


def draft_of(channel: str, news: News, alerts: Iterable[AlertRecord]) -> Draft:
    """Make the job that delivers news to a channel. It has all that is told, so the alerts may change meanwhile."""
    payload = {"channel": channel, "news": news.value, "alerts": [document(one) for one in alerts]}
    return registry.get(DELIVERY_TYPE).draft(**payload)


def document(one: AlertRecord) -> dict[str, Any]:
    """Return what is told of an alert as JSON data."""
    return {
        "id": one.id,
        "key": one.key,
        **one.facts.document(),
        "since": to_text(one.began_at),
        "fired_at": to_text(one.fired_at) if one.fired_at else None,
        "resolved_at": to_text(one.resolved_at) if one.resolved_at else None,
    }


def _receivers() -> Iterable[Channel]:
    if signals.alert_fired.has_listeners() or signals.alert_resolved.has_listeners():
        yield Channel(name=SIGNAL, via="signal")


def _wants(channel: Channel, change: AlertChange) -> bool:
    if change.after is None or (change.news is News.RESOLVED and not channel.resolved):
        return False
    return channel.level == "warning" or change.after.level >= 3  # as health.Level.ERROR
