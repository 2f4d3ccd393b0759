"""A handler for the tests of locked rows."""

from __future__ import annotations

import time

from jobqueue import Fixed, JobContext, job
from tests.app.ledger import is_open, recorded


@job(retry=Fixed(0))
def advance(ctx: JobContext, gate: str) -> None:
    """Tell again and again how far it is, until the test opens a gate."""
    with recorded(ctx):
        percent = 0.0
        while not is_open(gate):
            percent = min(99.0, percent + 0.05)
            ctx.progress(percent)
            time.sleep(0.01)
