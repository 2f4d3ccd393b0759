"""The handlers of the previous release. They share a name with the new ones, so no process has both."""

from __future__ import annotations

from benchmarks.faults.jobs import Told
from benchmarks.faults.ledger import recorded
from jobqueue import Fixed, JobContext, job


@job(retry=Fixed(0), max_retries=1)
def letter(ctx: JobContext, email: str) -> Told:
    """Read the payload in its old form."""
    with recorded(ctx):
        if not email:
            raise ValueError("a letter needs an address")
        return {"fence": ctx.fence}
