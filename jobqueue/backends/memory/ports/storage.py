"""The storage of jobs in memory, where nothing is left over."""

from __future__ import annotations

from jobqueue.backends.ports import StorageReader
from jobqueue.records.storage import Storage


class MemoryStorageReader(StorageReader):
    """Has nothing to say."""

    def read(self) -> Storage:
        return Storage()
