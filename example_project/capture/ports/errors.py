"""What an outside service may answer instead of doing its work. No message quotes what was sent or received."""

from __future__ import annotations


class PortError(Exception):
    """Something outside did not do as it was asked; another attempt may succeed."""


class Busy(PortError):
    """It asks to be left alone for a while: ``retry_after`` seconds, if it says for how long."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(PortError):
    """It will never do this, however often it is asked."""
