"""The objects that the parts of a supervisor share."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobqueue.backends.base import Backend
from jobqueue.records import WorkerRequest
from jobqueue.worker.database_link import DatabaseLink
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.supervisor.claims import Claims
from jobqueue.worker.supervisor.events import Events
from jobqueue.worker.supervisor.executors import Executors
from jobqueue.worker.supervisor.metrics.buffer import MetricsBuffer
from jobqueue.worker.worker_lock import WorkerLock


@dataclass(slots=True, kw_only=True)
class WorkerContext:
    """The backend of a supervisor, the link to it, the claims, the executors, the events and the metrics."""

    backend: Backend
    owner: str
    options: WorkerOptions
    claims: Claims
    executors: Executors
    database: DatabaseLink
    events: Events
    #: ``None`` where no lock can prove that this worker is dead.
    lock: WorkerLock | None = None
    #: The types that the worker takes, with their aliases.
    types: frozenset[str] = frozenset()
    metrics: MetricsBuffer = field(default_factory=MetricsBuffer)
    stopping: bool = False
    #: What an operator asked of this worker, as of its last heartbeat.
    request: WorkerRequest | None = None
    #: When a handler's own transaction last stored its completion, which no cycle has seen.
    changed_at: float = 0.0
    #: Jobs that were attempted here and wait for another attempt. A drain waits for them.
    awaited: set[str] = field(default_factory=set)

    def obstacle(self) -> str:
        """Return why this worker takes no jobs, or an empty string."""
        if self.stopping:
            return "the worker is stopping"
        if self.request is not None:
            return "an operator asked the worker to take no jobs"
        return "the database is out of reach" if self.database.is_lost else ""
