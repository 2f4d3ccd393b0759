"""Tests of the ports of a backend."""

from __future__ import annotations
