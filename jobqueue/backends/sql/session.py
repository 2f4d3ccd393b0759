"""The session: access to one database, with its transactions, its clock and its errors."""

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
from jobqueue.models import Job

T = TypeVar("T")
M = TypeVar("M", bound=Model)


class Session(ABC):
    """The database of an alias, through Django's connection of this thread.

    Writes use ``transact``, which combines ``reporting``, ``retrying`` and ``write_transaction``. Each of the three can
    also be used alone.
    """

    #: Whether a worker's connection keeps one session of the server, because there is no transaction pooler.
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
        """Return the time by which leases are judged."""

    # Transactions

    def atomic(self) -> AbstractContextManager[object]:
        """Open a transaction, or a savepoint inside one."""
        return transaction.atomic(using=self.alias)

    def in_atomic(self) -> bool:
        """Return whether a transaction is open."""
        return self.connection.in_atomic_block

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call a function after the commit."""
        # Robust: the work is stored, and a failing receiver must not look like a failing commit.
        transaction.on_commit(callback, using=self.alias, robust=True)

    def transact(self, work: Callable[[], T]) -> T:
        """Do work in a transaction. On SQLite it is repeated while the database is locked."""

        def in_transaction() -> T:
            with self.write_transaction():
                return work()

        with self.reading():
            return self.retrying(in_transaction)

    @abstractmethod
    def retrying(self, work: Callable[[], T]) -> T:
        """Do work that stores all or nothing. On SQLite it is repeated while the database is locked."""

    @abstractmethod
    def write_transaction(self) -> AbstractContextManager[object]:
        """Open a transaction that takes a write lock at its start, if the database has one, or open a savepoint."""

    def check_deferred(self) -> None:  # noqa: B027 - SQLite has nothing deferred
        """Check the deferred constraints now, instead of at the end of the transaction."""

    @contextmanager
    def index_order(self, most: int) -> Iterator[int]:
        """Have the database read an index in its order. Yield how many entries it can read soon, up to ``most``."""
        yield most

    @abstractmethod
    def ids_with_text(self, rows: QuerySet[Job], text: str, most: int) -> list[str] | None:
        """Find the newest of some jobs that wait for somebody, by a text in their errors, ignoring case.

        Return ``None`` if no index has such a text.
        """

    # Errors, and text that other programs wrote

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Raise NotMigrated, which says to migrate, instead of an error about a missing table or column."""
        try:
            yield
        except (ProgrammingError, OperationalError) as error:
            if self.is_missing_table(error):
                raise NotMigrated(self.alias) from error
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let this thread read text in the wrong encoding, and report a missing table."""
        with self.reporting(), self.any_text():
            yield

    def any_text(self) -> AbstractContextManager[None]:
        """Let this thread read text that is not in the database's encoding."""
        return nullcontext()

    def answering_within(self, seconds: float) -> AbstractContextManager[object]:
        """Inside, fail this thread's statements if the server is silent for ``seconds``."""
        return nullcontext()

    def true_text(self) -> AbstractContextManager[None]:
        """Inside ``any_text``, raise for text in the wrong encoding. ``retrying`` then ends such jobs."""
        return nullcontext()

    @abstractmethod
    def is_missing_table(self, error: Exception) -> bool:
        """Return whether an error says that a table or column of the queue is missing."""

    def lies_in_row(self, error: Exception) -> bool:
        """Return whether a value in a row caused an error, rather than the database or the connection."""
        return isinstance(error, OF_VALUES)
