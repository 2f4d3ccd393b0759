"""An app with which a supervisor stands still as soon as it has given out its first jobs."""

from __future__ import annotations
