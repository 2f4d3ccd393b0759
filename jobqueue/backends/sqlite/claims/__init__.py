"""Claims on SQLite."""

from __future__ import annotations
