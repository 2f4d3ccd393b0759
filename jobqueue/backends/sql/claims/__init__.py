"""The claims of workers: which jobs are next, under which limits, and for how long."""

from __future__ import annotations
