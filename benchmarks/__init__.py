"""The benchmarks: the queue's speed beside the bare SQL of the same minute (``python -m benchmarks``)."""

from __future__ import annotations
