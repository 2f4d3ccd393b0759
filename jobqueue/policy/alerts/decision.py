"""The decision about one alert: whether it fires, is over, and is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from jobqueue.policy.alerts.rules import Rule
from jobqueue.records.alert import AlertChange, AlertFacts, AlertRecord, AlertState, News


def begin(new_id: str, key: str, level: int, facts: AlertFacts, now: datetime) -> AlertRecord:
    """Make the alert of a problem that was found for the first time."""
    return AlertRecord(
        id=new_id, key=key, state=AlertState.PENDING, level=level, facts=facts, began_at=now, seen_at=now
    )


def found(known: AlertRecord, facts: AlertFacts, level: int, rule: Rule, now: datetime) -> AlertRecord:
    """Return an alert whose problem is found. It fires once its problem has lasted."""
    is_worse = level > known.level
    after = replace(known, facts=facts, level=max(level, known.level), seen_at=now, missing_since=None)
    if after.state is AlertState.PENDING and now - after.began_at >= rule.wait:
        after = replace(after, state=AlertState.FIRING, fired_at=now)
    # A level that rises is told once more. One that falls and rises again is no news.
    return replace(after, told_at=None) if is_worse and after.state is AlertState.FIRING else after


def missing(known: AlertRecord, rule: Rule, now: datetime) -> AlertRecord | None:
    """Return an alert whose problem isn't found. It is over once the problem was gone for long.

    Return ``None`` if it never fired: nobody has to know.
    """
    if known.state is AlertState.PENDING:
        return None
    since = known.missing_since or now
    if now - since < rule.gone_for:
        return replace(known, missing_since=since)
    return replace(known, state=AlertState.RESOLVED, missing_since=since, resolved_at=now)


def told(before: AlertRecord | None, after: AlertRecord, rule: Rule, now: datetime, *, silent: bool) -> AlertChange:
    """Decide what is told of an alert. The end of an alert that nobody was told of isn't told either."""
    news = None if silent else _news(after, rule, now)
    if news is News.FIRED:
        after = replace(after, told_at=now, reminded_at=now)
    elif news is News.REMINDER:
        after = replace(after, reminded_at=now)
    return AlertChange(before=before, after=after, news=news)


def _news(after: AlertRecord, rule: Rule, now: datetime) -> News | None:
    if after.state is AlertState.RESOLVED:
        return News.RESOLVED if after.reminded_at else None
    if after.state is not AlertState.FIRING or after.missing_since is not None:
        return None
    if after.told_at is None:
        return News.FIRED
    last = after.reminded_at or after.told_at
    return News.REMINDER if rule.remind is not None and now - last >= rule.remind else None


def next_look(after: AlertRecord, rule: Rule, now: datetime) -> timedelta | None:
    """Return how long it takes until this alert changes by time alone."""
    if after.state is AlertState.PENDING:
        return rule.wait - (now - after.began_at)  # in this order no moment of another program overflows
    if after.state is AlertState.RESOLVED:
        return None
    if after.missing_since is not None:
        return rule.gone_for - (now - after.missing_since)
    if rule.remind is not None and after.reminded_at is not None:
        return rule.remind - (now - after.reminded_at)
    return None
