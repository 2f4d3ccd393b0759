"""An app whose supervisor freezes after it has assigned its first jobs."""

from __future__ import annotations
