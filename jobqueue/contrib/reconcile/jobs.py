"""The job ``reconcile_jobs``, which does the same as ``manage.py jobqueue reconcile`` and logs the result."""

from __future__ import annotations

import logging

from jobqueue.api import job
from jobqueue.handlers.context import JobContext
from jobqueue.reconcile import Discrepancy, reconcile

logger = logging.getLogger("jobqueue")

#: How many discrepancies are kept in the result. The log has all.
KEPT = 100


@job(priority=10, timeout=3600)
def reconcile_jobs(ctx: JobContext) -> dict[str, object]:
    """Compare all completed jobs that have a reconciler with the world, and log each discrepancy."""
    found: list[dict[str, str]] = []

    def tell(one: Discrepancy) -> None:
        logger.warning("Reconciliation, job %s (%s): %s", one.job_id, one.job_type, one.text)
        if len(found) < KEPT:
            found.append({"id": one.job_id, "type": one.job_type, "text": one.text})

    def step(done: int, total: int) -> None:
        ctx.checkpoint()
        ctx.progress(100 * done / total, done=done, total=total)

    summary = reconcile(tell, step=step)
    return {
        "compared": summary.compared,
        "differing": summary.differing,
        "failed": summary.failed,
        "discrepancies": found,
    }
