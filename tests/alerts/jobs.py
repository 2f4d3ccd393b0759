"""The jobs of these tests' workers."""

from __future__ import annotations

from jobqueue import Discard, job


@job(critical=True)
def settle_account() -> None:
    """Become a dead letter."""
    raise Discard("the account is closed")
