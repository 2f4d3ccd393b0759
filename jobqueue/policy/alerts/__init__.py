"""Alerts: the rules and channels of the setting ``ALERTS``, and the decision when an alert fires, ends and is told."""

from __future__ import annotations
