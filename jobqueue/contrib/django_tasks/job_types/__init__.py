"""The job types of tasks, with their arguments and attempts."""

from __future__ import annotations
