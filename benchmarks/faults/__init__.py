"""The fault laboratory: what the queue does when something breaks (``python -m benchmarks.faults``)."""

from __future__ import annotations
