"""The comparison of completed jobs with the world: what was done and is gone. It reports, and mends nothing."""

from __future__ import annotations

from jobqueue.reconcile.comparison import Discrepancy, Summary, reconcile

__all__ = ["Discrepancy", "Summary", "reconcile"]
