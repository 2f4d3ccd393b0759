"""How values look: statuses, moments, lengths of time, JSON and errors. What may hold a secret is redacted here."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext

from jobqueue.clock import SYSTEM
from jobqueue.policy.redaction import redact_data, redact_text
from jobqueue.states import JobStatus

#: A shape each, so that colour is not the only signal.
SIGNS = {
    JobStatus.QUEUED: "○",
    JobStatus.IN_PROGRESS: "▶",
    JobStatus.COMPLETED: "✓",
    JobStatus.FAILED: "■",
    JobStatus.DEAD_LETTER: "✕",
}
_MINUTE = timedelta(minutes=1)


def badge(status: str, label: str) -> SafeString:
    """Show a status as sign and word."""
    return format_html(
        '<span class="jq-status jq-{}"><span class="jq-sign" aria-hidden="true">{}</span>{}</span>',
        status.replace("_", "-"),
        SIGNS[JobStatus(status)],
        label,
    )


def length(value: timedelta) -> str:
    """Say how long, in the largest unit that fits."""
    if value < _MINUTE:
        seconds = int(value.total_seconds())
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    now = SYSTEM.now()
    return timesince(now - value, now, depth=1)


def duration(seconds: float | None) -> str:
    """Say how long an attempt took, to the precision people care for."""
    if seconds is None:
        return ""
    if seconds < 1:
        return gettext("%(count)d ms") % {"count": round(seconds * 1000)}
    if seconds < _MINUTE.total_seconds():
        return gettext("%(count).1f s") % {"count": seconds}
    return length(timedelta(seconds=seconds))


def ago(moment: datetime) -> str:
    """Say how far a moment is from now."""
    now = SYSTEM.now()
    if moment > now:
        return gettext("in %(length)s") % {"length": length(moment - now)}
    return gettext("%(length)s ago") % {"length": length(now - moment)}


def exactly(moment: datetime) -> str:
    """Write a moment out, in the reader's time zone."""
    local = timezone.localtime(moment) if settings.USE_TZ else moment
    return f"{local:%Y-%m-%d %H:%M:%S %Z}"


def near(moment: datetime, words: str) -> SafeString:
    """Show words about a moment, with the moment itself behind them."""
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exactly(moment), words)


def in_full(moment: datetime) -> SafeString:
    """Show a moment and its distance."""
    return format_html(
        '<time datetime="{}">{}</time> <span class="jq-quiet">{}</span>',
        moment.isoformat(),
        exactly(moment),
        ago(moment),
    )


def json_block(value: Any) -> SafeString:
    """Show JSON on lines of its own, without its secrets."""
    text = json.dumps(redact_data(value), indent=2, ensure_ascii=False)
    return format_html('<pre class="jq-block" tabindex="0">{}</pre>', text)


def text_block(text: str, secrets: Any = ()) -> SafeString:
    """Show a text as it stands, without the secrets it may have picked up."""
    return format_html('<pre class="jq-block" tabindex="0">{}</pre>', redact_text(text, secrets))


def first_line(text: str | None) -> str:
    """Show where an error begins; it is redacted whole, for a secret may go over the line's end."""
    lines = redact_text(text or "").strip().splitlines()
    return lines[0] if lines else ""
