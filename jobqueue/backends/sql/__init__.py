"""The parts that the backends of both databases share."""

from __future__ import annotations
