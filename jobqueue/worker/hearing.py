"""What executors say, taken to where it belongs: outcomes to be stored, reports of progress, and who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jobqueue.clock import SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import Event, EventKind, Progress
from jobqueue.worker import wire
from jobqueue.worker.holdings import NEVER, Claimed, Held
from jobqueue.worker.member import Member
from jobqueue.worker.place import Place
from jobqueue.worker.wire import Word

#: Reports of progress are stored at most so often, all together.
STORE_PROGRESS_EVERY = 0.3


class Hearing:
    """Takes in what executors say."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._reports: dict[Claimed, str] = {}
        self._store_at = 0.0
        self._heeded: dict[Word, Callable[[Member, Any], None]] = {
            Word.READY: self._ready,
            Word.OUTCOMES: self._outcomes,
            Word.PROGRESS: self._progress,
        }

    @property
    def due(self) -> float:
        """When reports of progress are to be stored."""
        return max(self._store_at, self._place.reach.out_until) if self._reports else NEVER

    def act(self) -> None:
        """Store the reports of progress, if it is time."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        self._store_at = now + STORE_PROGRESS_EVERY
        reports, self._reports = self._reports, {}
        held = [Progress(*key, self._place.owner, text) for key, text in reports.items()]
        locked = self._place.reach.ask(lambda: self._place.backend.progress(held))
        self._reports = {(one.id, one.fence): one.report for one in locked or ()}  # nothing was heard meanwhile

    def hear(self, member: Member) -> None:
        """Take in what one executor has said."""
        was_deaf = member.deaf
        for word, content in member.hear():
            self._heeded[word](member, content)
        if member.deaf and not was_deaf:
            self._place.crew.hang_up(member)
        elif member.leaving:
            self._place.crew.dismiss_if_idle(member)

    def _ready(self, member: Member, content: dict[str, Any]) -> None:
        self._place.crew.born(member, listening=bool(content["listening"]))
        self._place.teller.tell_the_rest()

    def _outcomes(self, member: Member, rows: list[wire.Row]) -> None:
        owner, holdings, now = self._place.owner, self._place.holdings, SYSTEM.monotonic()
        for row in rows:
            held = member.held.pop((row[0], row[1]), None)
            if held is None:
                continue
            self._reports.pop(held.key, None)  # the last of them comes with the outcome
            if len(row) == 4:
                self._stored(held, row[3])
            elif held.key not in holdings.running:
                continue  # given up before it came
            elif len(row) == 2 or held.reason is StopReason.LEASE_LOST:
                self._lost(held)
            else:
                holdings.finish(held, wire.settlement(row, owner), now)

    def _stored(self, held: Held, followed: Iterable[Sequence[Any]]) -> None:
        """Note that a handler's own transaction has stored its completion."""
        self._place.holdings.drop(held.key)
        self._place.books.completed(held)
        self._place.changed_at = SYSTEM.monotonic()
        events = [self._place.teller.completed_itself(held)]
        worker = self._place.teller.worker
        for child, kind, queue, refusal in followed:
            events.append(Event(EventKind.FOLLOWED, child, kind, queue, worker=worker, error=refusal))
        self._place.teller.tell(events)

    def _progress(self, _member: Member, rows: list[wire.Row]) -> None:
        running = self._place.holdings.running
        self._reports.update({(row[0], row[1]): row[2] for row in rows if (row[0], row[1]) in running})

    def _lost(self, held: Held) -> None:
        self._place.holdings.drop(held.key)
        self._place.teller.tell([self._place.teller.lost(held)])
