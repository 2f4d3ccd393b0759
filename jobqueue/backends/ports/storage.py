"""The port that reads what the database keeps that nobody needs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.records.storage import Storage


class StorageReader(ABC):
    """Reads what the database keeps that nobody needs."""

    @abstractmethod
    def read(self) -> Storage:
        """Read the dead rows and who keeps them, and the size of the log. The cost doesn't depend on their number."""
