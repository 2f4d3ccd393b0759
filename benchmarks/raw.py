"""The bare SQL of a handwritten queue on the same table, straight through the driver."""

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
    """Many jobs of one kind, due ``first_due`` seconds from now and then every 10 milliseconds."""

    count: int
    status: str = "queued"
    type: str = "resize_image"
    payload: str = PAYLOAD
    queue: str = "default"
    priority: int = 5
    first_due: float = -86_400.0


def rows_to_insert(count: int, *, keyed: bool) -> list[Row]:
    """Return prepared rows, so that only the SQL is timed."""
    now = to_text(SYSTEM.now())
    ids = [new_id() for _ in range(count)]
    return [
        (one, "default", "resize_image", "queued", 5, now, PAYLOAD, f"raw-{one}" if keyed else None, 0, 3, now, now)
        for one in ids
    ]


class Raw(ABC):
    """A direct connection to the database of a place through the driver."""

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
        """Drop everything in the database, statistics included. Migrations create it again."""

    @abstractmethod
    def versions(self) -> str:
        """Return the database and its version."""

    @abstractmethod
    def enqueue(self, rows: Sequence[Row]) -> None:
        """Insert row by row, each committed."""

    @abstractmethod
    def enqueue_many(self, rows: Sequence[Row]) -> None:
        """Insert all rows in one transaction."""

    @abstractmethod
    def cycle(self, owner: str, done: Sequence[Held], limit: int) -> list[Held]:
        """Complete finished jobs and claim the next ones, in one transaction."""

    @abstractmethod
    def analyse(self) -> None:
        """Collect the planner's statistics."""

    @abstractmethod
    def settle_down(self) -> None:
        """Flush the database's pending writes, so that they don't happen during the measurement."""

    @abstractmethod
    def leave_unanalysed(self) -> None:
        """Keep the database from collecting statistics by itself."""

    def fill(self, crowd: Crowd, *, skip: int = 0) -> None:
        """Insert a crowd with one statement. ``skip`` continues an existing one."""
        self._fill(crowd, self._filled, skip)
        self._filled += crowd.count

    @abstractmethod
    def _fill(self, crowd: Crowd, number: int, skip: int) -> None:
        """Insert jobs whose ids are numbered from ``number`` on."""
