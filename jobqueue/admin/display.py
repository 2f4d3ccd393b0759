"""The display of values: statuses, times, durations and errors. Texts are redacted here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from math import floor
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext, npgettext

from jobqueue.clock import SYSTEM
from jobqueue.observe.terminal_safe import harmless
from jobqueue.observe.wording import Wording
from jobqueue.policy.redaction import redact_beginning, redact_text
from jobqueue.states import JobStatus

#: A sign for each, so that colour is not the only signal.
SIGNS = {
    JobStatus.QUEUED: "○",
    JobStatus.IN_PROGRESS: "▶",
    JobStatus.COMPLETED: "✓",
    JobStatus.FAILED: "■",
    JobStatus.DEAD_LETTER: "✕",
}


class _Away(NamedTuple):
    """A distance in one unit, for ``timesince``, which uses ``%``. Each ``npgettext_lazy`` would take 34 kB."""

    worded: Callable[[int], str]

    def __mod__(self, values: Mapping[str, int]) -> str:
        return self.worded(values["num"]) % values


#: The units after "in" and before "ago": some languages inflect them there.
_AWAY = {
    "year": _Away(lambda num: npgettext("how far away", "%(num)d year", "%(num)d years", num)),
    "month": _Away(lambda num: npgettext("how far away", "%(num)d month", "%(num)d months", num)),
    "week": _Away(lambda num: npgettext("how far away", "%(num)d week", "%(num)d weeks", num)),
    "day": _Away(lambda num: npgettext("how far away", "%(num)d day", "%(num)d days", num)),
    "hour": _Away(lambda num: npgettext("how far away", "%(num)d hour", "%(num)d hours", num)),
    "minute": _Away(lambda num: npgettext("how far away", "%(num)d minute", "%(num)d minutes", num)),
}
_MINUTE = timedelta(minutes=1)
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
#: As many seconds as fit between the years 1 and 10,000.
_LONGEST = 300_000_000_000
#: Longer texts are cut: nobody reads them, and they slow the browser down.
LONGEST_SHOWN = 100_000


def badge(status: str, label: str) -> SafeString:
    """Show a status as a sign and a word."""
    return format_html(
        '<span class="jq-status jq-{}"><span class="jq-sign" aria-hidden="true">{}</span>{}</span>',
        status.replace("_", "-"),
        SIGNS[JobStatus(status)],
        label,
    )


def length(value: timedelta, units: dict[str, Any] | None = None) -> str:
    """Format a duration in the largest unit that fits."""
    if value < _MINUTE:
        seconds = int(value.total_seconds())
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    # From the year 1, so that even the longest duration ends before the year 10,000.
    return timesince(_LONG_AGO, _LONG_AGO + value, time_strings=units, depth=1)


def duration(seconds: float | None) -> str:
    """Format the duration of an attempt; short ones more precisely."""
    if seconds is None or not 0 <= seconds < _LONGEST:  # another program may have written anything there
        return ""
    if seconds < 1:
        return gettext("%(count)d ms") % {"count": round(seconds * 1000)}
    if seconds < _MINUTE.total_seconds():
        return gettext("%(count)s s") % {"count": number_format(round(seconds, 1), 1)}
    return length(timedelta(seconds=seconds))


def elapsed(begin: datetime, end: datetime) -> timedelta:
    """Return the time between two moments; zero if clocks that disagree put the end first."""
    return max(end - begin, timedelta(0))


def took(begin: datetime, end: datetime) -> str:
    """Format the duration between two times."""
    return duration(elapsed(begin, end).total_seconds())


def percent(share: float) -> float:
    """Convert a share to percent, rounded down: with one failure among thousands it is less than 100."""
    return floor(share * 1000 + 1e-9) / 10


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Format how long ago a time was, or how far ahead it is."""
    now = now or SYSTEM.now()
    if moment > now:
        return gettext("in %(length)s") % {"length": length(moment - now, _AWAY)}
    return gettext("%(length)s ago") % {"length": length(now - moment, _AWAY)}


def exactly(moment: datetime) -> str:
    """Format a time in full, in the current time zone."""
    local = timezone.localtime(moment) if settings.USE_TZ else moment
    return f"{local:%Y-%m-%d %H:%M:%S %Z}"


def near(moment: datetime, words: str) -> SafeString:
    """Show words about a time, with the time itself as a tooltip."""
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exactly(moment), words)


def at(moment: datetime) -> SafeString:
    """Show a time in full."""
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), exactly(moment))


def in_full(moment: datetime, now: datetime | None = None) -> SafeString:
    """Show a time in full, and how far away it is."""
    return format_html('{} <span class="jq-quiet">{}</span>', at(moment), ago(moment, now))


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """Redact a text, replace its control characters, and cut it if it is long."""
    shown, is_all = redact_beginning(text, LONGEST_SHOWN, secrets)
    return harmless(shown) if is_all else f"{harmless(shown)}…"


def text_block(text: str, secrets: Iterable[str] = ()) -> SafeString:
    """Show a preformatted text, redacted."""
    return format_html('<pre class="jq-block" tabindex="0">{}</pre>', clean(text, secrets))


def first_line(text: str | None) -> str:
    """Return the first line of an error. The whole text is redacted first: a secret may span lines."""
    lines = redact_text(text or "").strip().splitlines()
    return lines[0] if lines else ""


#: How sentences are written on pages.
WORDING = Wording(exactly, length, ago, lambda count: number_format(count, force_grouping=True))
