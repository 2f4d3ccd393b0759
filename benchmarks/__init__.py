"""How fast the queue is beside the bare SQL of the same minute: ``python -m benchmarks``."""

from __future__ import annotations
