"""The statements of the ports, the same for both databases."""

from __future__ import annotations
