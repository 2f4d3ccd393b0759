"""Limits: how code declares them, and which jobs may start under them."""

from __future__ import annotations
