"""The verdicts on answers to webhooks. Pure."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto

#: The longest wait that a receiver may ask for.
LONGEST_PATIENCE = timedelta(hours=1)
_PASSING = frozenset({408, 425, 429})


class DeliveryVerdict(Enum):
    """The verdict on an answer."""

    DELIVERED = auto()
    AGAIN = auto()
    NEVER = auto()
    GONE = auto()


def verdict_of(status: int) -> DeliveryVerdict:
    """Return the verdict: 2xx is delivered, 408, 425, 429 and 5xx are temporary, 410 is gone, others are permanent."""
    if 200 <= status < 300:
        return DeliveryVerdict.DELIVERED
    if status in _PASSING or status >= 500:
        return DeliveryVerdict.AGAIN
    return DeliveryVerdict.GONE if status == 410 else DeliveryVerdict.NEVER


def delay_of(retry_after: float | None) -> timedelta | None:
    """Return the wait that the receiver asked for, within bounds, or ``None``."""
    return None if retry_after is None else min(timedelta(seconds=retry_after), LONGEST_PATIENCE)


def reason_of(status: int) -> str:
    """Describe a failure."""
    if 300 <= status < 400:
        return f"The receiver answered {status}, a redirect. Redirects are not followed; change the endpoint's URL."
    return f"The receiver answered {status}."
