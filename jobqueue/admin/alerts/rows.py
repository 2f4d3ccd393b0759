"""Alerts as their pages show them, with what each channel answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.urls import NoReverseMatch
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import display
from jobqueue.admin.links import Links
from jobqueue.alerts.evaluation import is_silenced
from jobqueue.alerts.messages import SIGNAL
from jobqueue.backends import current
from jobqueue.channels.news import path_of
from jobqueue.models.job import STATUS_LABELS
from jobqueue.observe.health import Level
from jobqueue.records import JobRecord
from jobqueue.records.alert import AlertRecord, AlertState, News, SentTo, Silence

_STATES: dict[AlertState, tuple[Any, str, str]] = {
    AlertState.PENDING: (_("pending"), "…", "jq-quiet"),
    AlertState.FIRING: (_("firing"), "✕", "jq-trouble"),
    AlertState.RESOLVED: (_("resolved"), "✓", "jq-completed"),
}
_NEWS = {
    News.FIRED.value: _("fired"),
    News.RESOLVED.value: _("resolved"),
    News.REMINDER.value: _("reminder"),
    News.TEST.value: _("test"),
}
_STATUSES = dict(STATUS_LABELS)


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One alert as a list shows it."""

    address: str
    state: Any
    sign: str
    tone: str
    is_error: bool
    sentence: str
    began: SafeString
    resolved: SafeString | str
    silence: str


@dataclass(frozen=True, slots=True)
class SentRow:
    """A delivery: its channel, what it told, its job's status, and what the channel answered."""

    channel: str
    news: Any
    status: SafeString | str
    address: str
    answer: str


def row_of(site: str, one: AlertRecord, silences: Sequence[Silence], now: datetime) -> AlertRow:
    """Return the row of an alert."""
    label, sign, tone = _STATES[one.state]
    return AlertRow(
        address=Links(site).alert(one.id),
        state=label,
        sign=sign,
        tone=tone,
        is_error=one.level >= Level.ERROR,
        sentence=display.clean(one.facts.sentence),
        began=display.near(one.began_at, display.ago(one.began_at, now)),
        resolved=display.near(one.resolved_at, display.ago(one.resolved_at, now)) if one.resolved_at else "",
        silence=silence_text(is_silenced(one, silences)),
    )


def silence_text(one: Silence | None) -> str:
    """Say until when an alert is silenced, by whom and why."""
    if one is None:
        return ""
    author = display.clean(one.author) or gettext("somebody")
    text = gettext("silenced until %(until)s by %(author)s: %(reason)s")
    return text % {"until": display.exactly(one.until), "author": author, "reason": display.clean(one.reason)}


def more(one: AlertRecord) -> str:
    """Return the address of the page that shows more of an alert's problem."""
    try:
        return path_of(one.facts)
    except NoReverseMatch:
        return ""


def sent_rows(of: admin.ModelAdmin[Any], one: AlertRecord) -> list[SentRow]:
    """Return the deliveries of an alert, the last ones first."""
    links = Links(of.admin_site.name)
    return [_sent_row(sent, links) for sent in reversed(one.sent)]


def _sent_row(sent: SentTo, links: Links) -> SentRow:
    job = None if "\0" in sent.job_id else current().jobs.get(sent.job_id)
    status = "" if job is None else job.status.value
    return SentRow(
        channel=gettext("receivers of signals") if sent.channel == SIGNAL else display.clean(sent.channel),
        news=_NEWS.get(sent.news, display.clean(sent.news)),
        status=display.badge(status, str(_STATUSES.get(status, status))) if status else "",
        address=links.job(sent.job_id) if job else "",
        answer=_answer(job),
    )


def _answer(job: JobRecord | None) -> str:
    if job is None:
        return gettext("The job was deleted.")
    if isinstance(job.result, dict) and isinstance(job.result.get("answer"), str):
        return display.clean(job.result["answer"])
    return display.first_line(job.error)
