"""The findings in sentences that commands and pages share: what is wrong, and what to do."""

from __future__ import annotations

from datetime import datetime

from jobqueue.observe.health.finding import Finding
from jobqueue.observe.health.sentences import (
    duties,
    failures,
    flow,
    lanes,
    limits,
    schedules,
    storage,
    thresholds,
    workers,
)
from jobqueue.observe.wording import Wording

_WORDS = {
    **workers.WORDS,
    **failures.WORDS,
    **flow.WORDS,
    **limits.WORDS,
    **lanes.WORDS,
    **storage.WORDS,
    **duties.WORDS,
    **schedules.WORDS,
    **thresholds.WORDS,
}


def sentence(one: Finding, wording: Wording, now: datetime) -> str:
    """Say what is wrong, in the active language. Several problems of one cause are one sentence."""
    words = _WORDS[one.cause]
    return (words.several if one.parts else words.one)(one, wording, now)


def advice(one: Finding) -> str:
    """Say what to do, in the active language."""
    return str(_WORDS[one.cause].advice)
