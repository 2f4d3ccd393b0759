"""A project with the queue installed, to observe how its other commands affect jobs."""

from __future__ import annotations
