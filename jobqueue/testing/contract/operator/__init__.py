"""What a backend promises to operators: to find jobs, to sum them up, and to change what becomes of them."""

from __future__ import annotations
