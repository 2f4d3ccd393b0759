"""The session: one database as this thread reaches it, with its transactions, its clock and its errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import TypeVar

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.utils import OperationalError, ProgrammingError

from jobqueue.backends.base import OF_VALUES
from jobqueue.clock import Clock
from jobqueue.errors import NotMigrated

T = TypeVar("T")
M = TypeVar("M", bound=Model)


class Session(ABC):
    """The database of an alias, through Django's connection of this thread.

    Work that writes goes through ``transact``. It is reported, retried and atomic. Its three parts serve where one
    of them alone is needed: ``reporting``, ``retrying`` and ``write_transaction``.
    """

    #: A worker's own connection, without a pooler: what is prepared in it stays.
    is_own = False
    #: How many seconds to wait for a lock; ``None`` means BUSY_TIMEOUT.
    patience: float | None = None

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        self.alias = alias
        self.clock = clock

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """This thread's connection."""
        return connections[self.alias]

    def rows(self, model: type[M]) -> QuerySet[M]:
        """Return the rows of a table in this database."""
        return model._default_manager.using(self.alias)

    @abstractmethod
    def now(self) -> datetime:
        """Ask the clock that judges leases."""

    # Transactions

    def atomic(self) -> AbstractContextManager[object]:
        """Open a transaction, or a savepoint inside one."""
        return transaction.atomic(using=self.alias)

    def in_atomic(self) -> bool:
        """Return whether a transaction is open."""
        return self.connection.in_atomic_block

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call back after the commit."""
        # Robust: the work is stored, and a failing receiver must not look like a failing commit.
        transaction.on_commit(callback, using=self.alias, robust=True)

    def transact(self, work: Callable[[], T]) -> T:
        """Do work in a transaction, and again where the database asks for it."""

        def in_transaction() -> T:
            with self.write_transaction():
                return work()

        with self.reading():
            return self.retrying(in_transaction)

    @abstractmethod
    def retrying(self, work: Callable[[], T]) -> T:
        """Do work that stores all or nothing, as often as the database asks for it."""

    @abstractmethod
    def write_transaction(self) -> AbstractContextManager[object]:
        """Open a transaction that may write from its first statement on, or a savepoint inside the caller's."""

    def check_deferred(self) -> None:  # noqa: B027 - SQLite has nothing deferred
        """Have the database check now what it would check at the end of the transaction."""

    # Errors, and text that other programs wrote

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turn a missing table into one sentence that says to migrate."""
        try:
            yield
        except (ProgrammingError, OperationalError) as error:
            if self.is_missing_table(error):
                raise NotMigrated(self.alias) from error
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read whatever another program has written, and report a missing table."""
        with self.reporting(), self.any_text():
            yield

    def any_text(self) -> AbstractContextManager[None]:
        """Let this thread read text that is not in the database's encoding."""
        return nullcontext()

    def true_text(self) -> AbstractContextManager[None]:
        """Fail inside ``any_text`` all the same where text would not be found again. ``retrying`` ends such jobs."""
        return nullcontext()

    @abstractmethod
    def is_missing_table(self, error: Exception) -> bool:
        """Return whether an error says that the job table is missing."""

    def lies_in_row(self, error: Exception) -> bool:
        """Return whether an error comes from what a row holds, and not from the database or the way to it."""
        return isinstance(error, OF_VALUES)
