"""Comparing completed jobs with the world: what was done, and is not there any more. It reports, and mends nothing."""

from __future__ import annotations

from jobqueue.reconciling.comparing import Discrepancy, Summary, reconcile

__all__ = ["Discrepancy", "Summary", "reconcile"]
