"""The project's handlers, which are the laboratory's."""

from __future__ import annotations

from benchmarks.faults import jobs as jobs
