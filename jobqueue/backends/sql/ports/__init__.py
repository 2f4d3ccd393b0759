"""The ports of both databases."""

from __future__ import annotations
