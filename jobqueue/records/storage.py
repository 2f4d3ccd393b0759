"""What a database keeps that nobody needs: dead rows under an old snapshot, a log that can't be written back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HolderKind(StrEnum):
    """What holds a snapshot. A replica does if it sends feedback; a slot and a prepared transaction have no process."""

    SESSION = "session"
    REPLICA = "replica"
    SLOT = "replication slot"
    PREPARED = "prepared transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHolder:
    """A session, or something without one, that keeps the database from removing dead rows.

    ``name`` is the application's, the slot's or the transaction's. ``since`` is unknown for a replica and a slot.
    """

    kind: HolderKind
    name: str
    pid: int | None = None
    state: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The dead and the live rows of the job table, the oldest holders of snapshots, and the bytes of the log.

    ``None`` means that the database has no such thing.
    """

    holders: tuple[SnapshotHolder, ...] = ()
    dead_rows: int | None = None
    live_rows: int | None = None
    log_size: int | None = None
