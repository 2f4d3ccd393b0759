"""The ports that differ on Postgres."""

from __future__ import annotations
