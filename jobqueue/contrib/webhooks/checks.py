"""System checks of the webhooks' settings."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution

from jobqueue import conf

#: The time limit of an attempt of ``webhook_dispatch``, including name resolution and log.
TIMEOUT = 30


def check_time_limit(**_: Any) -> list[CheckMessage]:
    """Check that a delivery times out before its attempt does, unless ``jobqueue.E003`` reports the settings."""
    if not conf.is_sound() or conf.get("WEBHOOK_TIMEOUT") < TIMEOUT:
        return []
    return [
        Caution(
            f"WEBHOOK_TIMEOUT is {conf.get('WEBHOOK_TIMEOUT'):g} s, but an attempt to deliver ends after {TIMEOUT} s: "
            "a slow receiver could get an executor killed, and would be missing from the log.",
            hint=f"Set JOBQUEUE['WEBHOOK_TIMEOUT'] below {TIMEOUT}.",
            id="jobqueue_webhooks.W001",
        )
    ]
