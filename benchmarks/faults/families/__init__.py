"""The faults, grouped by their targets."""

from __future__ import annotations
