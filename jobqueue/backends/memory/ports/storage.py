"""The storage of jobs in memory, which keeps nothing that nobody needs."""

from __future__ import annotations

from jobqueue.backends.ports import StorageReader
from jobqueue.records.storage import Storage


class MemoryStorageReader(StorageReader):
    """Has nothing to say."""

    def read(self) -> Storage:
        return Storage()
