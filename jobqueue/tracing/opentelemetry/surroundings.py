"""The context of OpenTelemetry around a call, also where nobody has set up a provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import context, propagate
from opentelemetry.context import Context


def headers() -> dict[str, str]:
    """Return the headers that continue the current trace."""
    carrier: dict[str, str] = {}
    if context.get_current():  # empty without an active trace, which is usual
        propagate.inject(carrier)
    return carrier


def continued(found: Mapping[str, str]) -> AbstractContextManager[None]:
    """Continue the trace of these headers. If a propagator fails, it does so here, not as the context is entered."""
    return _attached(propagate.extract(found))


@contextmanager
def _attached(found: Context) -> Iterator[None]:
    token = context.attach(found)
    try:
        yield
    finally:
        context.detach(token)
