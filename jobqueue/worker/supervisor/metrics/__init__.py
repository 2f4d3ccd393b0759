"""The metrics of a supervisor's attempts: a buffer in memory, and its flush to the database."""

from __future__ import annotations
