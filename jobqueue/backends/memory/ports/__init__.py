"""The ports of the backend in memory."""

from __future__ import annotations
