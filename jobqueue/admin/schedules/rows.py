"""Schedules as their pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import display
from jobqueue.admin.dashboard import scales
from jobqueue.admin.links import Links
from jobqueue.errors import InvalidOption
from jobqueue.models.job import STATUS_LABELS
from jobqueue.policy.schedules.rule import zone_of
from jobqueue.records.schedule import Origin, ScheduleRecord
from jobqueue.schedules import summary
from jobqueue.schedules.summary import Run, ScheduleState

_STATES: dict[ScheduleState, tuple[Any, str, str]] = {
    ScheduleState.ACTIVE: (_("active"), "▶", "jq-completed"),
    ScheduleState.PAUSED: (_("paused"), "■", "jq-attention"),
    ScheduleState.ENDED: (_("ended"), "■", "jq-quiet"),
    ScheduleState.UNKNOWN_TYPE: (_("no live worker knows its type"), "✕", "jq-trouble"),
    ScheduleState.LEFT_CODE: (_("left the code"), "✕", "jq-attention"),
    ScheduleState.TROUBLE: (_("in trouble"), "✕", "jq-trouble"),
}
_STATUSES = dict(STATUS_LABELS)


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """One schedule as a list shows it."""

    name: str
    address: str
    state: Any
    sign: str
    tone: str
    rule: str
    words: str
    zone: str
    type: str
    next: SafeString | str
    last: SafeString | str
    runs: int
    trouble: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as a page shows it, and as a cell of the heat line."""

    id: str
    address: str
    status: SafeString
    tone: str
    slot: SafeString | str
    duration: str
    title: str
    error: str


def row_of(of: admin.ModelAdmin[Any], one: ScheduleRecord, known: frozenset[str] | None, now: datetime) -> ScheduleRow:
    """Return the row of a schedule."""
    label, sign, tone = _STATES[summary.state_of(one, known)]
    return ScheduleRow(
        name=one.name,
        address=Links(of.admin_site.name).schedule(one.id),
        state=label,
        sign=sign,
        tone=tone,
        rule=one.rule,
        words=summary.in_words(one),
        zone=one.zone,
        type=one.type,
        next=display.near(one.next_at, display.ago(one.next_at, now)) if one.is_live and one.next_at else "",
        last=display.near(one.last_slot_at, display.ago(one.last_slot_at, now)) if one.runs else "",
        runs=one.runs,
        trouble=one.trouble,
    )


def percent(share: float) -> str:
    """Format a share as the dashboard does."""
    return gettext("%(count)s %%") % {"count": number_format(display.percent(share), 1)}


def run_rows(runs: Iterable[Run], site: str) -> list[RunRow]:
    """Return the rows of runs."""
    return [_run_row(one, Links(site)) for one in runs]


def _run_row(one: Run, links: Links) -> RunRow:
    status, label = one.job.status.value, str(_STATUSES.get(one.job.status.value, one.job.status.value))
    slot = display.at(one.slot_at) if one.slot_at else gettext("by hand")
    when = display.exactly(one.slot_at or one.job.created_at)
    return RunRow(
        id=one.job.id,
        address=links.job(one.job.id),
        status=display.badge(status, label),
        tone=f"jq-{status.replace('_', '-')}",
        slot=slot,
        duration=display.duration(one.duration.total_seconds()) if one.duration else "",
        title=f"{when}: {label}",
        error=display.first_line(one.error),
    )


@dataclass(frozen=True, slots=True)
class SlotRow:
    """A slot in the schedule's zone and in the reader's."""

    there: str
    here: str


def slot_rows(slots: Iterable[datetime], zone: str) -> list[SlotRow]:
    """Return slots in both zones."""
    try:
        tz = zone_of(zone)
    except InvalidOption:
        tz = ZoneInfo("UTC")
    return [SlotRow(_written(one.astimezone(tz)), _written(scales.here(one))) for one in slots]


def _written(moment: datetime) -> str:
    return f"{date_format(moment, 'D j M Y')}, {moment:%H:%M:%S %Z}"


def origin_of(one: ScheduleRecord) -> str:
    """Say where a schedule is defined."""
    return gettext("code") if one.origin is Origin.CODE else gettext("admin")
