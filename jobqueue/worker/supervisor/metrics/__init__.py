"""What a supervisor adds up of its attempts, and how that comes into the database."""

from __future__ import annotations
