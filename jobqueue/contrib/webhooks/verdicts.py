"""What an answer means. Pure: a status comes in, a verdict goes out."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto

#: A receiver may ask for patience, but not for ever.
LONGEST_PATIENCE = timedelta(hours=1)
_PASSING = frozenset({408, 425, 429})


class Verdict(Enum):
    """What follows an answer."""

    DELIVERED = auto()
    AGAIN = auto()
    NEVER = auto()
    GONE = auto()


def verdict_of(status: int) -> Verdict:
    """Judge a status: 2xx is delivered; 408, 425, 429 and 5xx may pass; 410 asks for no more; all else stays so."""
    if 200 <= status < 300:
        return Verdict.DELIVERED
    if status in _PASSING or status >= 500:
        return Verdict.AGAIN
    return Verdict.GONE if status == 410 else Verdict.NEVER


def delay_of(retry_after: float | None) -> timedelta | None:
    """Say how long to wait as the receiver asked, within bounds; nothing where it did not ask."""
    return None if retry_after is None else min(timedelta(seconds=retry_after), LONGEST_PATIENCE)


def reason_of(status: int) -> str:
    """Put a failure into words."""
    if 300 <= status < 400:
        return f"The receiver answered {status}, a redirect. Redirects are not followed; change the endpoint's URL."
    return f"The receiver answered {status}."
