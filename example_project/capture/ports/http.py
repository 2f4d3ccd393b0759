"""The HTTP client of the ports: one for each process, with time limits, and with errors by kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx

from example_project.capture.ports.errors import Busy, PortError, Refused

TIMEOUT = httpx.Timeout(30.0, connect=5.0)


@cache
def client() -> httpx.Client:
    """Return the client of this process, which keeps connections open. It follows no redirects."""
    return httpx.Client(timeout=TIMEOUT)


def post(service: str, url: str, **content: Any) -> httpx.Response:
    """Post a request, and return a successful answer. Raises Busy, Refused or PortError."""
    try:
        response = client().post(url, **content)
    except httpx.HTTPError as error:
        raise PortError(f"{service} did not answer: {type(error).__name__}.") from error
    if not response.is_success:
        raise error_of(service, response)
    return response


def error_of(service: str, response: httpx.Response, kind: str = "") -> PortError:
    """Return the exception for an unsuccessful answer. It only contains the kind of error."""
    status = response.status_code
    told = f"{service} answered {status}{f' ({kind})' if kind else ''}."
    if status in (408, 409, 425, 429, 503, 529):
        return Busy(told, _seconds(response.headers.get("retry-after")))
    return Refused(told) if 300 <= status < 500 else PortError(told)


def _seconds(header: str | None) -> float | None:
    """Return a Retry-After in seconds. Dates and invalid values count as none."""
    return min(float(header), 3600.0) if header and header.isdecimal() else None
