"""The runner of the relay: it brings jobs from the outbox to the shared database."""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable, Mapping
from datetime import datetime

from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, ProgrammingError

from jobqueue import backends
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.backends.wake import PAUSE
from jobqueue.clock import NEVER, SYSTEM
from jobqueue.records.relay import Batch, Refused
from jobqueue.relay.intake import Intake
from jobqueue.relay.outbox import Outbox
from jobqueue.worker.database_link import NO_ANSWER, DatabaseLink
from jobqueue.worker.heartbeat_file import HeartbeatFile
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.parent import Parent
from jobqueue.worker.signals import Signals
from jobqueue.worker.wake_listener import WakeListener

logger = logging.getLogger("jobqueue")

#: How many jobs are relayed in one transaction. Their payloads must fit into memory.
AT_ONCE = 200
#: How many seconds a shared database may be silent before it counts as lost.
SILENCE = 10.0


def runner_of(options: WorkerOptions) -> RelayRunner:
    """Return the runner that ``runworker`` uses instead of a worker if ``RELAY_TO`` names a database."""
    outbox, shared = backends.current(), backends.shared()
    if not (isinstance(outbox, SqlBackend) and isinstance(shared, SqlBackend)):
        raise ImproperlyConfigured(
            "Nothing can be relayed: JOBQUEUE['RELAY_TO'] must name a database, and JOBQUEUE['BACKEND'] must be None."
        )
    return RelayRunner(outbox, shared, options)


class RelayRunner:
    """Relays until it is told to stop, or with ``drain`` until nothing waits or the shared database is lost.

    Each job arrives once, even if processes are killed. Several relays of one outbox take turns.
    """

    def __init__(self, outbox: SqlBackend, shared: SqlBackend, options: WorkerOptions) -> None:
        self.signals = Signals()
        self._shared = shared
        self._outbox, self._intake = Outbox(outbox.session), Intake(shared.session)
        self._here = DatabaseLink(outbox.alias, lambda: 0, options.lease, outbox.lies_in_row)
        self._there = DatabaseLink(shared.alias, lambda: 0, options.lease, shared.lies_in_row)
        self._options = options
        self._selector = selectors.DefaultSelector()
        self._wake_ups = WakeListener(outbox, self._selector)
        self._source: str | None = None
        self._look_again = 0.0
        self._is_loss_recorded = False
        self._has_failed = False
        self._heartbeat = HeartbeatFile(options.heartbeat, self._obstacle) if options.heartbeat else None

    def run(self) -> int:
        """Relay until it is time to stop. Return the exit status: 0, or 1 if a drain has left jobs behind."""
        self._shared.bound_silence(SILENCE)
        self._selector.register(self.signals.bell, selectors.EVENT_READ, self.signals)
        if self._options.stop_at_eof:
            Parent(self.signals, self._selector)
        self._wake_ups.open()
        while not self.signals.asked:
            self._beat()
            if self.turn():
                continue
            if self._options.drain and (self._is_stuck or self._here.ask(self._outbox.is_empty)):
                break
            self._rest()
        self._wake_ups.close()
        self._selector.close()
        self.signals.close()
        return int(self._options.drain and not self._here.ask(self._outbox.is_empty))

    def _beat(self) -> None:
        if self._heartbeat:
            self._heartbeat.act()

    def _obstacle(self) -> str:
        """Return why nothing can be relayed, or an empty string."""
        if self._here.is_lost:
            return "the local database is out of reach"
        return "the shared database is out of reach" if self._there.is_lost else ""

    @property
    def _is_stuck(self) -> bool:
        return self._here.is_lost or self._there.is_lost or self._has_failed

    def turn(self) -> bool:
        """Relay one batch. Return whether another batch may follow at once."""
        if self._out_until > SYSTEM.monotonic() or self._here.ask(self._outbox.is_empty) is not False:
            return False
        self._source = source = self._source or self._here.ask(self._outbox.source)
        if source is None:
            return False
        received = self._there.ask(lambda: self._receive(source), NO_ANSWER)
        self._has_failed = received is NO_ANSWER
        if received is NO_ANSWER:
            self._record_loss()
            return False
        return received is not None and self._close(*received)

    def _receive(self, source: str) -> tuple[Batch, Mapping[str, Refused]] | None:
        """Store the next batch in the shared database. A missing table or permission counts as a lost database."""
        try:
            return self._intake.receive(source, lambda: self._here.ask(lambda: self._outbox.take(AT_ONCE)))
        except ProgrammingError as error:
            raise OperationalError(*error.args) from error

    @property
    def _out_until(self) -> float:
        return max(self._here.out_until, self._there.out_until)

    def _close(self, batch: Batch, refused: Mapping[str, Refused]) -> bool:
        """Close a batch that the shared database has stored. Pass cancellations on, and log the relayed jobs."""
        if not batch.jobs:
            return False
        self._there.ask(lambda: self._shared.wake(_age(batch)))
        asked = self._here.ask(lambda: self._outbox.asked_to_stop(batch))
        if asked and self._there.ask(lambda: self._shared.operator.cancel(asked)) is None:
            return False
        if asked is None or not self._do(lambda: self._outbox.close(batch, refused, asked)):
            return False
        self._is_loss_recorded = False
        self._tell(batch, refused)
        return True

    def _tell(self, batch: Batch, refused: Mapping[str, Refused]) -> None:
        if len(batch.jobs) > len(refused):
            logger.info("Relayed to %r, jobs: %d", self._shared.alias, len(batch.jobs) - len(refused))
        for row in batch.jobs:
            if one := refused.get(row["id"]):
                facts = {"job_id": row["id"], "job_type": row["type"], "queue": row["queue"], "reason": one.reason}
                logger.warning("Job not relayed: %s %s (%s)", row["type"], row["id"], one.error, extra=facts)

    def _record_loss(self) -> None:
        """Store once that the shared database is out of reach, so that ``jobqueue status`` shows it."""
        if self._there.is_lost and not self._is_loss_recorded:
            why = self._there.why
            self._is_loss_recorded = self._do(lambda: self._outbox.lost(why))

    def _do(self, verb: Callable[[], None]) -> bool:
        """Call a method of the outbox. Return whether its database could be reached."""

        def work() -> bool:
            verb()
            return True

        return bool(self._here.ask(work))

    def _rest(self) -> None:
        """Wait for a wake-up, a signal or the next poll. If a database is lost, wait until the next try."""
        now = SYSTEM.monotonic()
        end = now + self._options.poll_interval
        if now < self._look_again:
            end = min(end, self._look_again)
        if self._out_until > now:
            end = self._out_until
        while not self.signals.asked and (now := SYSTEM.monotonic()) < end:
            self._beat()
            soonest = min(end, self._wake_ups.due, self._heartbeat.due if self._heartbeat else NEVER)
            ready = self._selector.select(max(0.0, soonest - now))
            heard = [key.data.hear() for key, _ in ready]
            if self._wake_ups.due <= SYSTEM.monotonic():
                heard.append(self._wake_ups.hear())
            if any(heard) and self._out_until <= SYSTEM.monotonic():
                self._look_again = SYSTEM.monotonic() + 2 * PAUSE  # for jobs whose wake-up was not sent
                return


def _age(batch: Batch) -> float:
    """Return how many seconds ago the oldest job of a batch became due."""
    oldest: datetime = min(row["scheduled_at"] for row in batch.jobs)
    return max(0.0, (SYSTEM.now() - oldest).total_seconds())
