"""The options of a worker, from the command line, environment variables or settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jobqueue.errors import InvalidOption
from jobqueue.policy.leases import LONGEST_LEASE, SHORTEST_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of one worker. Lengths of time are seconds. ``None`` means no limit; ``queues=None`` serves all."""

    queues: frozenset[str] | None = None
    types: frozenset[str] | None = None
    excluded_types: frozenset[str] = frozenset()
    processes: int = 1
    concurrency: int = 10
    drain: bool = False
    stop_at_eof: bool = False
    max_jobs: int | None = None
    max_jobs_per_process: int | None = None
    max_rss: int | None = None
    poll_interval: float = 1.0
    lease: float = 60.0
    shutdown_grace: float = 30.0
    stop_grace: float = 5.0
    metrics_port: int | None = None
    metrics_host: str = ""
    name: str = ""
    heartbeat: str = ""

    def __post_init__(self) -> None:
        shortest, longest = SHORTEST_LEASE.total_seconds(), LONGEST_LEASE.total_seconds()
        for name, lowest, highest in (
            ("processes", 0, 256),
            ("concurrency", 1, 10_000),
            ("max_jobs", 1, None),
            ("max_jobs_per_process", 1, None),
            ("max_rss", 16, None),
            ("poll_interval", 0.01, 3600),
            ("lease", shortest, longest),
            ("shutdown_grace", 0, 86_400),
            ("stop_grace", 0, 3600),
            ("metrics_port", 1, 65_535),
        ):
            value = getattr(self, name)
            if value is not None and not lowest <= value <= (highest or value):
                bounds = f"from {lowest:g} to {highest:g}" if highest else f"at least {lowest:g}"
                raise InvalidOption(f"--{name.replace('_', '-')}", f"must be {bounds}, got {value}")
        for name in ("max_rss", "max_jobs_per_process"):
            if self.processes == 0 and getattr(self, name) is not None:
                raise InvalidOption(
                    f"--{name.replace('_', '-')}", "needs executor processes, so it cannot be used with --processes 0"
                )


class Plan(NamedTuple):
    """The size of an executor: its number of slots, and how many outcomes fill a message."""

    slots: int
    full: int
