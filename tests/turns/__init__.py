"""Tests of fair queues."""

from __future__ import annotations
