"""System checks of the webhooks."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution

from jobqueue import conf

#: How long an attempt of ``webhook_dispatch`` may take, name resolution and log included.
TIMEOUT = 30


def check_time_limit(**_: Any) -> list[CheckMessage]:
    """Check that a delivery ends by itself before its attempt is ended; other mistakes are ``jobqueue.E003``."""
    if not conf.is_sound() or conf.get("WEBHOOK_TIMEOUT") < TIMEOUT:
        return []
    return [
        Caution(
            f"WEBHOOK_TIMEOUT is {conf.get('WEBHOOK_TIMEOUT'):g} s, but an attempt to deliver ends after {TIMEOUT} s: "
            "a slow receiver would cost its executor, and the log would not tell of it.",
            hint=f"Set JOBQUEUE['WEBHOOK_TIMEOUT'] below {TIMEOUT}.",
            id="jobqueue_webhooks.W001",
        )
    ]
