"""Alerts: the evaluation of the queue's health, kept over time, and the messages that tell of what changed.

``evaluate`` does one evaluation. ``policy.alerts`` decides, the port ``backend.alerts`` keeps alerts, and ``channels``
delivers.
"""

from __future__ import annotations

from jobqueue.alerts.evaluation import Evaluation, evaluate
from jobqueue.alerts.sights import CRITICAL

__all__ = ["CRITICAL", "Evaluation", "evaluate"]
