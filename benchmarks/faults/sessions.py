"""Sessions of other programs that use the same database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from benchmarks.databases import Place


@contextmanager
def session(place: Place, *, options: str = "", **parameters: Any) -> Iterator[psycopg.Connection[Any]]:
    """Open a session on Postgres in autocommit. ``options`` are its settings."""
    with psycopg.connect(place.address, autocommit=True, options=options, **parameters) as opened:
        yield opened


@contextmanager
def transaction(place: Place, statement: str, *values: Any, options: str = "") -> Iterator[list[Any]]:
    """Open a transaction on Postgres, run one statement in it and hold it open, then roll it back."""
    with psycopg.connect(place.address, options=options) as opened:
        try:
            yield opened.execute(statement, values or None).fetchall()
        finally:
            opened.rollback()


@contextmanager
def exclusive(path: str) -> Iterator[None]:
    """Lock a SQLite file against all other writers."""
    opened = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        opened.execute("BEGIN EXCLUSIVE")
        yield
        opened.execute("ROLLBACK")
    finally:
        opened.close()


def sleepers(place: Place, most: int, **parameters: Any) -> list[psycopg.Connection[Any]]:
    """Open idle sessions until the server refuses more, or up to a number."""
    opened = []
    with suppress(psycopg.OperationalError):
        for _ in range(most):
            opened.append(psycopg.connect(place.address, autocommit=True, **parameters))
    return opened
