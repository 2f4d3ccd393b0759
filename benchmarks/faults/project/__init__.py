"""A project with the queue installed: what its other commands do to jobs is looked at."""

from __future__ import annotations
