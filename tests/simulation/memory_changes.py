"""What triggers note in a database, noted by a memory backend."""

from __future__ import annotations

from contextlib import contextmanager

from jobqueue.backends.memory import MemoryBackend
from tests.simulation.changes import COLUMNS, Change
from tests.simulation.turns import here


class NotedMemory(MemoryBackend):
    """A memory backend that notes each change of a row, unless it is rolled back."""

    def __init__(self, clock):
        super().__init__(clock=clock)
        self._noted = []

    def new(self):
        """The changes since the last time."""
        new, self._noted = self._noted, []
        return new

    @contextmanager
    def atomic(self):
        size = len(self._noted)
        try:
            with super().atomic():
                yield
        except BaseException:
            del self._noted[size:]
            raise

    def _note(self, job_id, before):
        actor = here()
        self._noted.append(Change(actor.name if actor else "nobody", job_id, before, self._values(job_id)))

    def _values(self, job_id):
        row = self._rows.get(job_id)
        return None if row is None else {name: getattr(row, name) for name in COLUMNS}

    def _store(self, draft, now):
        super()._store(draft, now)
        self._note(draft.id, None)

    def _change(self, job_id, **changes):
        before = self._values(job_id)
        super()._change(job_id, **changes)
        self._note(job_id, before)

    def _purge(self, row):
        before = self._values(row.id)
        refusal = super()._purge(row)
        if refusal is None:
            self._note(row.id, before)
        return refusal
