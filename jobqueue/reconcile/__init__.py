"""The comparison of completed jobs with the world. Effects of jobs that are gone are reported, but not repaired."""

from __future__ import annotations

from jobqueue.reconcile.comparison import Discrepancy, Summary, reconcile

__all__ = ["Discrepancy", "Summary", "reconcile"]
