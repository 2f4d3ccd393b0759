"""Claims on Postgres."""

from __future__ import annotations
