"""The storing of settlements on SQLite: completions together, all others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobqueue.backends.sql.settlements import Settlements, in_order, settlement_values
from jobqueue.backends.sqlite import statements
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.clock import to_text
from jobqueue.records import ClaimKey, Settled, Settlement
from jobqueue.states import Move


class SqliteSettlements(Settlements):
    """Writes settlements through the driver."""

    _session: SqliteSession

    def store(self, settlements: Sequence[Settlement]) -> Settled:
        plain = all(one.is_plain_completion for one in settlements)
        if not plain:
            return super().store(settlements)
        if self._complete_all(settlements):
            return Settled()  # no refusals, and no history, follow-up jobs or progress
        ordered = in_order(settlements)
        return self.store_rest(settlements, ordered, self._write_each(ordered))

    def write(self, settlements: Sequence[Settlement]) -> set[ClaimKey]:
        completions = [one for one in settlements if one.move is Move.COMPLETE]
        if not self._complete_all(completions):
            return self._write_each(settlements)
        others = [one for one in settlements if one.move is not Move.COMPLETE]
        return {one.claim for one in completions} | self._write_each(others)

    def _write_each(self, settlements: Sequence[Settlement]) -> set[ClaimKey]:
        now = self._session.now()
        with self._session.driver() as driver:
            return {one.claim for one in settlements if driver.execute(*_settling(one, now)).rowcount == 1}

    def _complete_all(self, completions: Sequence[Settlement]) -> bool:
        """Store completions together. If any is refused, store none: only single statements show which."""
        if not completions:
            return True
        written = to_text(self._session.now())
        rows = [_completion(one, written) for one in completions]
        with self._session.driver() as driver:
            if len(rows) == 1:
                return driver.execute(statements.COMPLETE, rows[0]).rowcount == 1
            driver.execute("SAVEPOINT jobqueue_complete")
            all_held = driver.executemany(statements.COMPLETE, rows).rowcount == len(rows)
            if not all_held:
                driver.execute("ROLLBACK TO jobqueue_complete")
            driver.execute("RELEASE jobqueue_complete")
        return all_held


def _completion(one: Settlement, written: str) -> tuple[Any, ...]:
    """Return the parameters of COMPLETE."""
    return (one.result, written, written, one.id, one.fence, one.owner)


def _settling(one: Settlement, now: datetime) -> tuple[str, Any]:
    """Return the statement that stores a settlement, and its parameters."""
    if one.move is Move.COMPLETE:
        return statements.COMPLETE, _completion(one, to_text(now))
    due_at = None if one.delay is None else to_text(now + one.delay)
    return statements.SETTLE, settlement_values(one) | {"now": to_text(now), "due_at": due_at}
