"""The search for jobs in bounded time: its plan, and the ids that it finds."""

from __future__ import annotations
