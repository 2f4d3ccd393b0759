"""The bare SQL, straight through the driver, that a queue written by hand would use on the same table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from jobqueue.clock import SYSTEM, to_text
from jobqueue.ids import new_id

#: The canonical columns of an INSERT.
COLUMNS = (
    "id, queue, type, status, priority, scheduled_at, payload, idempotency_key, attempts, max_retries, "
    "created_at, updated_at"
)
#: One row, as Django's cursor and `psycopg` want it; `sqlite3` has its own sign for a parameter.
INSERT = f"INSERT INTO job_queue ({COLUMNS}) VALUES ({', '.join(['%s'] * 12)}) ON CONFLICT DO NOTHING RETURNING id"
INSERT_MANY = INSERT.removesuffix(" RETURNING id")

Row = tuple[str, str, str, str, int, str, str, str | None, int, int, str, str]
Held = tuple[str, int]

PAYLOAD = '{"image_id":7,"width":800}'
RESULT = '{"done":true}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Many jobs of one kind, the first ``first_due`` seconds from now, the others 10 milliseconds apart."""

    count: int
    status: str = "queued"
    type: str = "resize_image"
    payload: str = PAYLOAD
    queue: str = "default"
    priority: int = 5
    first_due: float = -86_400.0


def rows_to_insert(count: int, *, keyed: bool) -> list[Row]:
    """Make rows ahead, so that the bare SQL is charged for nothing but itself."""
    now = to_text(SYSTEM.now())
    ids = [new_id() for _ in range(count)]
    return [
        (one, "default", "resize_image", "queued", 5, now, PAYLOAD, f"raw-{one}" if keyed else None, 0, 3, now, now)
        for one in ids
    ]


class Raw(ABC):
    """A connection of its own to the database of a place, and nothing between it and the driver."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._filled = 0
        self.connect()

    @abstractmethod
    def connect(self) -> None:
        """Open the connection."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def empty(self) -> None:
        """Drop everything in the database, statistics included; the migrations make it anew."""

    @abstractmethod
    def versions(self) -> str:
        """Name the database and its version."""

    @abstractmethod
    def enqueue(self, rows: Sequence[Row]) -> None:
        """Insert row by row, each committed."""

    @abstractmethod
    def enqueue_many(self, rows: Sequence[Row]) -> None:
        """Insert all rows in one transaction."""

    @abstractmethod
    def cycle(self, owner: str, done: Sequence[Held], limit: int) -> list[Held]:
        """Complete what is done and claim the next jobs, in one transaction."""

    @abstractmethod
    def analyse(self) -> None:
        """Collect the planner's statistics."""

    @abstractmethod
    def settle_down(self) -> None:
        """Have the database write out what it still has to, so that it does not do so while it is measured."""

    @abstractmethod
    def leave_unanalysed(self) -> None:
        """Keep the database from collecting statistics on its own."""

    def fill(self, crowd: Crowd, *, skip: int = 0) -> None:
        """Insert a crowd by one statement; ``skip`` continues one that is there already."""
        self._fill(crowd, self._filled, skip)
        self._filled += crowd.count

    @abstractmethod
    def _fill(self, crowd: Crowd, number: int, skip: int) -> None:
        """Insert jobs whose ids are numbered from ``number`` on."""
