"""How values look: statuses, moments, lengths of time and errors. What may hold a secret is redacted here."""

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
from jobqueue.observe.steering import harmless
from jobqueue.policy.redaction import redact_beginning, redact_text
from jobqueue.states import JobStatus

#: A shape each, so that colour is not the only signal.
SIGNS = {
    JobStatus.QUEUED: "○",
    JobStatus.IN_PROGRESS: "▶",
    JobStatus.COMPLETED: "✓",
    JobStatus.FAILED: "■",
    JobStatus.DEAD_LETTER: "✕",
}


class _Away(NamedTuple):
    """How far away in one unit, with a ``%`` for ``timesince``; ``npgettext_lazy`` would cost 34 kB for each."""

    worded: Callable[[int], str]

    def __mod__(self, values: Mapping[str, int]) -> str:
        return self.worded(values["num"]) % values


#: The units once more, for how far away a moment is: in some languages they are inflected then.
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
#: From the year 1 on, so many seconds end before the year 10,000.
_LONGEST = 300_000_000_000
#: More of a text is not for reading, and would only keep the browser busy.
LONGEST_SHOWN = 100_000


def badge(status: str, label: str) -> SafeString:
    """Show a status as sign and word."""
    return format_html(
        '<span class="jq-status jq-{}"><span class="jq-sign" aria-hidden="true">{}</span>{}</span>',
        status.replace("_", "-"),
        SIGNS[JobStatus(status)],
        label,
    )


def length(value: timedelta, units: dict[str, Any] | None = None) -> str:
    """Say how long, in the largest unit that fits."""
    if value < _MINUTE:
        seconds = int(value.total_seconds())
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    # Counted from where the longest there is still ends before the year 10,000.
    return timesince(_LONG_AGO, _LONG_AGO + value, time_strings=units, depth=1)


def duration(seconds: float | None) -> str:
    """Say how long an attempt took, to the precision people care for."""
    if seconds is None or not 0 <= seconds < _LONGEST:  # another program may have written anything there
        return ""
    if seconds < 1:
        return gettext("%(count)d ms") % {"count": round(seconds * 1000)}
    if seconds < _MINUTE.total_seconds():
        return gettext("%(count)s s") % {"count": number_format(round(seconds, 1), 1)}
    return length(timedelta(seconds=seconds))


def percent(share: float) -> float:
    """Write a share in percent; rounded down, for one failure among many thousands is no 100 %."""
    return floor(share * 1000 + 1e-9) / 10


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Say how far a moment is from now."""
    now = now or SYSTEM.now()
    if moment > now:
        return gettext("in %(length)s") % {"length": length(moment - now, _AWAY)}
    return gettext("%(length)s ago") % {"length": length(now - moment, _AWAY)}


def exactly(moment: datetime) -> str:
    """Write a moment out, in the reader's time zone."""
    local = timezone.localtime(moment) if settings.USE_TZ else moment
    return f"{local:%Y-%m-%d %H:%M:%S %Z}"


def near(moment: datetime, words: str) -> SafeString:
    """Show words about a moment, with the moment itself behind them."""
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exactly(moment), words)


def at(moment: datetime) -> SafeString:
    """Show a moment by itself."""
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), exactly(moment))


def in_full(moment: datetime, now: datetime | None = None) -> SafeString:
    """Show a moment and its distance."""
    return format_html('{} <span class="jq-quiet">{}</span>', at(moment), ago(moment, now))


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without its secrets, and without what would turn its writing around; a long one is cut."""
    shown, is_all = redact_beginning(text, LONGEST_SHOWN, secrets)
    return harmless(shown) if is_all else f"{harmless(shown)}…"


def text_block(text: str, secrets: Iterable[str] = ()) -> SafeString:
    """Show a text as it stands, without the secrets it may have picked up."""
    return format_html('<pre class="jq-block" tabindex="0">{}</pre>', clean(text, secrets))


def first_line(text: str | None) -> str:
    """Show where an error begins; it is redacted whole, for a secret may go over the line's end."""
    lines = redact_text(text or "").strip().splitlines()
    return lines[0] if lines else ""
