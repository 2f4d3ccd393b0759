"""What executors say, taken to where it belongs: outcomes to be stored, reports of progress, and who listens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from jobqueue.clock import SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import Event, EventKind, Progress
from jobqueue.worker import testimony
from jobqueue.worker.holdings import NEVER, Claimed, Held
from jobqueue.worker.member import READS, Member
from jobqueue.worker.place import Place
from jobqueue.worker.testimony import Follower
from jobqueue.worker.wire import BadMessage, Word

logger = logging.getLogger("jobqueue")

#: Reports of progress are stored at most so often, all together.
STORE_PROGRESS_EVERY = 0.3
#: Whoever began a message so many seconds ago and has not ended it gets no more jobs. An executor in which a handler
#: keeps the interpreter's lock cannot go on; what it runs has its time limits.
LONGEST_MESSAGE = 10.0


class Hearing:
    """Takes in what executors say."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._reports: dict[Claimed, str] = {}
        self._store_at = 0.0
        #: Executors in the midst of a message, and since when.
        self._midway: dict[Member, float] = {}
        self._heeded: dict[Word, Callable[[Member, Any], None]] = {
            Word.READY: self._ready,
            Word.OUTCOMES: self._outcomes,
            Word.PROGRESS: self._progress,
        }

    @property
    def due(self) -> float:
        """When reports of progress are to be stored, or a message should have come to its end."""
        end = min(self._midway.values()) + LONGEST_MESSAGE if self._midway else NEVER
        return min(self._store_due, end)

    @property
    def _store_due(self) -> float:
        return max(self._store_at, self._place.reach.out_until) if self._reports else NEVER

    def act(self) -> None:
        """Store the reports of progress, and replace executors whose messages do not end, if it is time."""
        now = SYSTEM.monotonic()
        if now >= self._store_due:
            self._store(now)
        for member in [one for one, since in self._midway.items() if since + LONGEST_MESSAGE <= now]:
            del self._midway[member]
            if member in self._place.crew.members and not member.leaving:
                logger.error(
                    "Executor %s has begun a message and has not ended it for %g s: it gets no more jobs",
                    member.pid,
                    LONGEST_MESSAGE,
                )
                self._place.crew.retire(member)

    def _store(self, now: float) -> None:
        self._store_at = now + STORE_PROGRESS_EVERY
        reports, self._reports = self._reports, {}
        held = [Progress(*key, self._place.owner, text) for key, text in reports.items()]
        locked = self._place.reach.ask(lambda: self._place.backend.progress(held))
        self._reports = {(one.id, one.fence): one.report for one in locked or ()}  # nothing was heard meanwhile

    def hear(self, member: Member, reads: int = READS) -> None:
        """Take in what one executor has said; one that says what no executor says is ended."""
        was_deaf = member.deaf
        try:
            self._heed(member, reads)
        except BadMessage as error:
            logger.error(
                "Executor %s said what no executor says: %s. It is ended, its jobs are settled as after a crash, and "
                "another executor takes its place. Look for code that writes to files it has not opened.",
                member.pid,
                error,
            )
            self._midway.pop(member, None)
            self._place.crew.end(member, str(error))
            return
        if member.deaf and not was_deaf:
            self._midway.pop(member, None)
            self._place.crew.hang_up(member)
        elif member.leaving:
            self._place.crew.dismiss_if_idle(member)

    def _heed(self, member: Member, reads: int) -> None:
        for word, content in member.hear(reads):
            if word not in self._heeded:
                raise BadMessage(f"a supervisor's word, {word}")
            self._heeded[word](member, content)
            self._midway.pop(member, None)
        if member.inbox.is_midway and not member.deaf:
            self._midway.setdefault(member, SYSTEM.monotonic())

    def _ready(self, member: Member, content: Any) -> None:
        self._place.crew.born(member, listening=testimony.ready(content))
        self._place.teller.tell_the_rest()

    def _outcomes(self, member: Member, content: Any) -> None:
        holdings, now = self._place.holdings, SYSTEM.monotonic()
        for held, said in testimony.outcomes(content, member.held, self._place.owner):
            del member.held[held.key]
            self._reports.pop(held.key, None)  # the last of them comes with the outcome
            if isinstance(said, list):
                self._stored(held, said)
            elif held.key not in holdings.running:
                continue  # given up before it came
            elif said is None or held.reason is StopReason.LEASE_LOST:
                self._lost(held)
            else:
                holdings.finish(held, said, now)

    def _stored(self, held: Held, followed: Iterable[Follower]) -> None:
        """Note that a handler's own transaction has stored its completion."""
        self._place.holdings.drop(held.key)
        self._place.books.completed(held)
        self._place.changed_at = SYSTEM.monotonic()
        events = [self._place.teller.completed_itself(held)]
        worker = self._place.teller.worker
        for child, kind, queue, refusal in followed:
            events.append(Event(EventKind.FOLLOWED, child, kind, queue, worker=worker, error=refusal))
        self._place.teller.tell(events)

    def _progress(self, member: Member, content: Any) -> None:
        running = self._place.holdings.running
        for claim, report in testimony.reports(content, member.held):
            if claim in running:
                self._reports[claim] = report

    def _lost(self, held: Held) -> None:
        self._place.holdings.drop(held.key)
        self._place.teller.tell([self._place.teller.lost(held)])
