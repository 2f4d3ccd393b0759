"""What the queue does when something breaks: ``python -m benchmarks.faults``."""

from __future__ import annotations
