"""The errors of outside services. No message quotes what was sent or received."""

from __future__ import annotations


class PortError(Exception):
    """An outside service failed. Another attempt may succeed."""


class Busy(PortError):
    """The service asks for a pause, of ``retry_after`` seconds if given."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(PortError):
    """The service will always refuse this request."""
