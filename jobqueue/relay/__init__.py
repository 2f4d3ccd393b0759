"""The relay: jobs wait in the outbox of a local database, and are taken in by a shared one."""

from __future__ import annotations
