"""Tests of a backend's methods for operators, which find, count and change jobs."""

from __future__ import annotations
