"""Reconciliation whenever a worker starts: a job goes through what completed jobs did, and logs what is not so now."""

from __future__ import annotations
