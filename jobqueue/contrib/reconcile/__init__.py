"""Reconciliation at each start of a worker: a job compares completed jobs with the world, and logs differences."""

from __future__ import annotations
