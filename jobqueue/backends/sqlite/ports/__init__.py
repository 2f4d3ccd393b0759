"""The ports that differ on SQLite."""

from __future__ import annotations
