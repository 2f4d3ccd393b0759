"""Tests of the storage: what a database keeps that nobody needs."""

from __future__ import annotations

from jobqueue.backends.base import Backend
from jobqueue.testing.contract.harness import Contract, put, take_one


class StorageContract(Contract):
    """Tests of what monitors learn of the storage."""

    def test_the_storage_counts_what_it_knows_of_and_changes_nothing(self, backend: Backend) -> None:
        job_id = put(backend)
        seen = backend.storage.read()
        assert all(number is None or number >= 0 for number in (seen.dead_rows, seen.log_size))
        assert all(one.name or one.pid is not None for one in seen.holders)
        assert take_one(backend).id == job_id
