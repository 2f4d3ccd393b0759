"""SQLite's JSON functions, which Django's own probe misses while another session writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

from django.db import connections


def probe(alias: str) -> None:
    """Have Django know whether SQLite has JSON functions, before its system checks ask.

    Django's probe opens a transaction. If that meets a locked file, Django takes the error for a missing function, and
    the check fields.E180 fails. The functions belong to the library, so a database in memory tells it too.
    """
    if connections[alias].vendor == "sqlite":
        with closing(sqlite3.connect(":memory:")) as memory, suppress(sqlite3.OperationalError):
            memory.execute("SELECT json('{}')")
            connections[alias].features.supports_json_field = True
