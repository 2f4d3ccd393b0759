"""The findings of ``observe.health`` as the commands write them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import translation

from jobqueue.cli.values import WORDING
from jobqueue.observe.health import Finding, advice, sentence


def text(one: Finding, now: datetime) -> str:
    """Write a finding and what to do on one line, in English like all output of the commands."""
    with translation.override(None):
        return " ".join(filter(None, (sentence(one, WORDING, now), advice(one))))


def document(one: Finding, now: datetime) -> dict[str, Any]:
    """Write a finding as JSON, with the problems that it sums up."""
    with translation.override(None):
        return {
            "level": one.level.word,
            "cause": one.cause.value,
            "text": sentence(one, WORDING, now),
            "advice": advice(one),
            "queues": list(one.queues),
            "types": list(one.types),
            "parts": [sentence(part, WORDING, now) for part in one.parts],
        }
