"""The faults, by what they are done to."""

from __future__ import annotations
