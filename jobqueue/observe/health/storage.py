"""Findings about the database's storage: an old snapshot that keeps dead rows, and a log that grows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading
from jobqueue.records.storage import SnapshotHolder

#: A snapshot is old after this long, and costs something from so many dead rows on.
OLD_SNAPSHOT = timedelta(minutes=1)
COSTLY_DEAD_ROWS = 10_000
#: Autovacuum removes dead rows of the job table within a minute or so. So many should not be left.
MANY_DEAD_ROWS = 500_000
#: SQLite writes its log back after about 4 MB. A log of more than this, in bytes, has a reader in its way.
LARGE_LOG = 64 * 1024 * 1024


def snapshot_held(seen: Reading) -> Iterator[Finding]:
    """Find the holder of an old snapshot that costs something."""
    holder, dead_rows = _oldest(seen), seen.storage.dead_rows or 0
    if holder is not None and dead_rows >= COSTLY_DEAD_ROWS:
        yield Finding(
            level=Level.WARNING,
            cause=Cause.SNAPSHOT_HELD,
            place=Place.QUEUES,
            dead_rows=dead_rows,
            since=holder.since,
            reason=described(holder),
        )


def dead_rows_kept(seen: Reading) -> Iterator[Finding]:
    """Find dead rows that autovacuum should have removed long ago: more than live ones, and nobody holds them."""
    dead_rows, live_rows = seen.storage.dead_rows or 0, seen.storage.live_rows
    if _oldest(seen) is None and live_rows is not None and dead_rows >= max(MANY_DEAD_ROWS, live_rows):
        yield Finding(level=Level.WARNING, cause=Cause.DEAD_ROWS_KEPT, place=Place.QUEUES, dead_rows=dead_rows)


def log_large(seen: Reading) -> Iterator[Finding]:
    """Find a log that a transaction keeps from being written back."""
    size = seen.storage.log_size or 0
    if size >= LARGE_LOG:
        yield Finding(level=Level.WARNING, cause=Cause.LOG_LARGE, place=Place.QUEUES, log_size=size)


def _oldest(seen: Reading) -> SnapshotHolder | None:
    """Return the oldest holder. One that doesn't say since when is believed to be old."""
    holders = seen.storage.holders
    return next((one for one in holders if one.since is None or seen.now - one.since >= OLD_SNAPSHOT), None)


def described(holder: SnapshotHolder) -> str:
    """Name a holder in one line."""
    pid = "" if holder.pid is None else f"pid {holder.pid}"
    parts = (str(holder.kind.value), holder.name, pid, holder.state)
    return ", ".join(part for part in parts if part)
