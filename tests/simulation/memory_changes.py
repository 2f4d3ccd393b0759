"""The changes of a memory backend, recorded like those of a database."""

from __future__ import annotations

from contextlib import contextmanager

from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.memory.tables import MemoryTables
from tests.simulation.changes import COLUMNS, Change
from tests.simulation.turns import here


class NotedTables(MemoryTables):
    """Tables that note each change of a row, unless it is rolled back."""

    def __init__(self, clock):
        super().__init__(clock)
        self.noted = []

    @contextmanager
    def atomic(self):
        size = len(self.noted)
        try:
            with super().atomic():
                yield
        except BaseException:
            del self.noted[size:]
            raise

    def insert(self, row, payload, context):
        super().insert(row, payload, context)
        self._note(row.id, None)

    def change(self, job_id, **changes):
        before = self._values(job_id)
        super().change(job_id, **changes)
        self._note(job_id, before)

    def delete(self, job_id):
        before = self._values(job_id)
        super().delete(job_id)
        self._note(job_id, before)

    def _note(self, job_id, before):
        actor = here()
        self.noted.append(Change(actor.name if actor else "nobody", job_id, before, self._values(job_id)))

    def _values(self, job_id):
        row = self.jobs.get(job_id)
        return None if row is None else {name: getattr(row, name) for name in COLUMNS}


class NotedMemory(MemoryBackend):
    """A memory backend that notes each change of a row."""

    tables_class = NotedTables

    def __init__(self, clock):
        super().__init__(clock=clock)

    def new(self):
        """The changes since the last time."""
        new, self._tables.noted = self._tables.noted, []
        return new
