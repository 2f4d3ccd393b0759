"""Tests as a project writes them, which ``test_documented`` runs with ``manage.py test``."""

from __future__ import annotations

import gc
import logging
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

import jobqueue
from jobqueue.models import Job
from jobqueue.signals import completed
from jobqueue.testing import drain, enqueued_jobs, run_inline
from tests.documented.shelf import jobs
from tests.documented.shelf.models import Note

TIMES = range(10)


def run_jobs(*options: str) -> None:
    call_command("runworker", "--drain", "--processes", "0", "--skip-checks", *options, verbosity=0)


def notes() -> list[str]:
    return sorted(Note.objects.values_list("text", flat=True))


class Committed(TransactionTestCase):
    """A handler's connection sees what was committed."""

    def run_all(self, *receipts: jobqueue.Receipt, options: tuple[str, ...] = ()) -> None:
        run_jobs(*options)
        ended = {(one.status, one.attempts, one.error) for one in map(jobqueue.get, [one.id for one in receipts])}
        assert ended == {("completed", 1, None)}, ended

    def test_one_row_is_written(self) -> None:
        for number in TIMES:
            self.run_all(jobs.write_note.enqueue(text=f"{number}"))
        assert notes() == [f"{number}" for number in TIMES]

    def test_many_handlers_write_at_a_time(self) -> None:
        for _ in range(3):
            self.run_all(*jobs.write_note.enqueue_many({"text": f"{number}"} for number in range(30)))
        assert Note.objects.count() == 90

    def test_coroutines_write(self) -> None:
        for _ in range(3):
            self.run_all(*jobs.write_note_async.enqueue_many({"text": f"{number}"} for number in range(30)))
        assert Note.objects.count() == 90

    def test_atomic_handlers_write(self) -> None:
        for _ in range(3):
            self.run_all(*jobs.write_note_atomically.enqueue_many({"text": f"{number}"} for number in range(30)))
        assert Note.objects.count() == 90

    def test_handlers_of_all_kinds_write_at_a_time(self) -> None:
        kinds = (jobs.write_note, jobs.write_note_async, jobs.write_note_atomically)
        for _ in range(3):
            self.run_all(*(kind.enqueue(text=f"{number}") for number in TIMES for kind in kinds))
        assert Note.objects.count() == 90

    def test_transactions_that_read_first_write(self) -> None:
        Note.objects.bulk_create(Note(text=f"{number}") for number in TIMES)
        self.run_all(*(jobs.rename_note.enqueue(text=f"{number}", to=f"new {number}") for number in TIMES))
        assert notes() == [f"new {number}" for number in TIMES]

    def test_handlers_enqueue(self) -> None:
        self.run_all(*jobs.write_and_follow.enqueue_many({"text": f"{number}"} for number in TIMES))
        assert Note.objects.count() == 30
        assert set(Job.objects.values_list("status", flat=True)) == {"completed"}

    def test_a_handler_works_for_longer_than_its_lease(self) -> None:
        receipt = jobs.write_slowly.enqueue(count=100)
        self.run_all(receipt, options=("--lease", "2"))
        assert Note.objects.count() == 100
        assert Job.objects.get(pk=receipt.id).progress == {"percent": 99.0}

    def test_what_fails_is_rolled_back_and_tried_again(self) -> None:
        receipt = jobs.write_at_second_try.enqueue(text="once")
        run_jobs()
        assert (jobqueue.get(receipt.id).status, notes()) == ("completed", ["once"])

    def test_time_limits_hold(self) -> None:
        receipts = [jobs.never_end.enqueue(), jobs.never_end_async.enqueue()]
        run_jobs()
        for receipt in receipts:
            found = jobqueue.get(receipt.id)
            assert (found.status, [one.ending for one in found.history]) == ("dead_letter", ["timed_out"])
        assert notes() == ["began", "began"]

    def test_receivers_write_too(self) -> None:
        def note_it(job_id: str, **_: object) -> None:
            Note.objects.create(text=job_id)

        completed.connect(note_it)
        try:
            self.run_all(*jobs.write_note.enqueue_many({"text": f"{number}"} for number in range(30)))
        finally:
            completed.disconnect(note_it)
        assert Note.objects.count() == 60

    def test_no_connection_is_left_behind(self) -> None:
        jobs.write_note.enqueue(text="one")
        jobs.write_note_async.enqueue(text="another")
        run_jobs()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
                assert cursor.fetchone() == (1,)

    def test_a_process_may_run_many_workers(self) -> None:
        logger = logging.getLogger("jobqueue")

        def left() -> tuple[object, ...]:
            threads = {one.name for one in threading.enumerate() if one.name.startswith("jobqueue")}
            return (
                threads,
                len([*Path("/proc/self/fd").iterdir()]),
                logger.handlers[:],
                logger.level,
                sys.getswitchinterval(),
            )

        out = StringIO()

        def said(verbosity: int) -> list[str]:
            jobs.write_note.enqueue(text="one")
            jobs.write_note_async.enqueue(text="another")
            out.truncate(0)
            call_command("runworker", "--drain", "--processes", "0", verbosity=verbosity, stdout=out, stderr=StringIO())
            gc.collect()
            return [line for line in out.getvalue().splitlines() if "Job completed" in line]

        said(1)
        before = left()
        for _ in range(3):
            assert len(said(1)) == 2
        assert said(0) == []
        assert left() == before

    def test_inside_a_transaction_it_is_refused_at_once(self) -> None:
        with transaction.atomic():
            jobs.write_note.enqueue(text="never")
            with pytest.raises(CommandError, match="TransactionTestCase"):
                run_jobs()

    def test_processes_that_cannot_see_a_database_in_memory_are_refused(self) -> None:
        if connection.vendor == "sqlite" and connection.is_in_memory_db():
            with pytest.raises(CommandError, match="--processes must be 0: the database 'default' is in the memory"):
                call_command("runworker", "--drain", verbosity=0)


class RolledBack(TestCase):
    """Nobody else sees what a ``TestCase`` does: its transaction never commits."""

    def test_it_is_refused_at_once(self) -> None:
        receipt = jobs.write_note.enqueue(text="never")
        for command in (("runworker",), ("jobqueue", "worker")):
            with pytest.raises(CommandError, match=r"'default'.+TransactionTestCase"):
                call_command(*command, "--drain", "--processes", "0", verbosity=0, stdout=StringIO())
        assert jobqueue.get(receipt.id).status == "queued"
        assert connection.in_atomic_block

    def test_jobs_run_inside_it(self) -> None:
        jobs.write_and_follow.enqueue(text="one")
        jobs.write_note_atomically.enqueue(text="two")
        drain()
        assert notes() == ["one", "one, enqueued", "one, followed", "two"]

    def test_jobs_run_where_the_test_executes_callbacks(self) -> None:
        with run_inline():
            with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
                jobs.write_note_async.enqueue(text="one")
                assert notes() == []
            assert notes() == ["one"]

    def test_its_rows_are_rolled_back(self) -> None:
        assert not enqueued_jobs()
        assert notes() == []
