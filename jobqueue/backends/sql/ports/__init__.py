"""The ports of a backend, as SQLite and Postgres implement them."""

from __future__ import annotations
