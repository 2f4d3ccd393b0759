"""The port of the registry of workers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.records import (
    WorkerRecord,
    WorkerRequest,
)


class WorkerRegistry(ABC):
    """The workers that are up, and those that died recently."""

    @abstractmethod
    def enlist(self, worker: WorkerRecord) -> WorkerRequest | None:
        """Store that a worker is up now, and forget workers that have been silent for a day.

        Return what an operator asked of it. Its own ``asked`` is not stored.
        """

    @abstractmethod
    def dismiss(self, owner: str) -> None:
        """Delete a worker that has ended."""

    @abstractmethod
    def ask(self, owner: str, request: WorkerRequest | None) -> bool:
        """Store what an operator asks of a worker, in place of what was asked before; ``None`` withdraws it.

        The worker is told when it enlists the next time. Return whether there is such a worker.
        """

    @abstractmethod
    def all(self) -> list[WorkerRecord]:
        """List the workers by name, including dead ones that were not deleted yet."""
