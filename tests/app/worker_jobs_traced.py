"""Jobs whose traces tests look at. Importing them imports no tracing library."""

from __future__ import annotations

import sys

from jobqueue import Cancel, Discard, Fixed, JobContext, Retry, Snooze, job
from tests.app.ledger import note


def _span_inside() -> None:
    """Make a span as instrumented code does."""
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry import trace

        with trace.get_tracer("a handler").start_as_current_span("inside"):
            pass


@job
def traced_work(number: int = 0) -> int:
    _span_inside()
    return number


@job
async def traced_wait(number: int = 0) -> int:
    _span_inside()
    return number


@job(max_retries=2, retry=Fixed(0))
def traced_failure(customer: str, word: str) -> None:
    whole = {"customer": customer}
    raise ValueError(f"no way with password={word} for {len(whole)}")


@job
def traced_verdict(which: str) -> None:
    raise {"retry": Retry(0), "snooze": Snooze(60), "discard": Discard("no"), "cancel": Cancel("no")}[which]


@job
def traced_parent(ctx: JobContext, number: int = 0) -> str:
    return ctx.enqueue(traced_work, number=number)


@job(max_retries=2, retry=Fixed(0))
def traced_end_to_end(ctx: JobContext, follow: bool = True) -> None:
    """Fail once, then end with a follow-up job."""
    _span_inside()
    note("ran", ctx)
    if ctx.attempt == 1:
        raise RuntimeError("the first attempt fails")
    if follow:
        ctx.enqueue(traced_wait)
