"""The process that claims and settles, keeps leases and limits, and runs no handler: one loop."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import selectors
import signal
from collections.abc import Callable

from jobqueue import signals
from jobqueue.backends.base import Backend
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_owner
from jobqueue.records import Ending, Failure, Settlement
from jobqueue.states import Move
from jobqueue.worker import deaths
from jobqueue.worker.bookkeeping import Bookkeeping
from jobqueue.worker.chores import Chores
from jobqueue.worker.crew import Crew
from jobqueue.worker.executor import Plan
from jobqueue.worker.hearing import Hearing
from jobqueue.worker.holdings import POSTPONED_FOR, Holdings, silence
from jobqueue.worker.leases import Leases
from jobqueue.worker.limits import Limits
from jobqueue.worker.loop import Loop
from jobqueue.worker.member import LAST_READS, Member
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.parent import Parent
from jobqueue.worker.place import Place, Reach
from jobqueue.worker.shutdown import Shutdown, Signals
from jobqueue.worker.telling import Teller
from jobqueue.worker.wake import Ear
from jobqueue.worker.zygote import Zygote

logger = logging.getLogger("jobqueue")

_LONGEST_WAIT = 5.0
#: A supervisor has more to do than to wait for another writer: signals, limits, executors that die.
_PATIENCE = 0.25
#: How long executors have to exit in: longer where signals are still to be sent.
_LAST_SIGNALS = 5.0
_LAST_MOMENT = 0.5


class Supervisor:
    """Runs one worker until it is told to stop, or has done what it was to do."""

    def __init__(
        self,
        backend: Backend,
        alias: str,
        options: WorkerOptions,
        types: frozenset[str],
        plan: Plan,
        zygote: Zygote | None,
    ) -> None:
        if zygote is not None:  # else handlers share the backend, and wait as they please
            backend.patience = _PATIENCE
        self.signals = Signals()
        self._selector = selectors.DefaultSelector()
        self._zygote = zygote
        holdings, owner = Holdings(), new_owner()
        crew = Crew(plan, options, zygote, self._selector, holdings)
        self.place = Place(
            backend=backend,
            owner=owner,
            options=options,
            holdings=holdings,
            crew=crew,
            reach=Reach(alias, holdings.__len__, options.lease, backend.lies_in_row),
            teller=Teller(crew, options.name or owner),
        )
        self.limits = Limits(self.place, may_kill=zygote is not None)
        self.leases = Leases(self.place, self.limits, zygote)
        self.loop = Loop(self.place, types, self.leases.guard)
        self.chores = Chores(self.place, types)
        self.bookkeeping = Bookkeeping(self.place)
        self.hearing = Hearing(self.place)
        self.shutdown = Shutdown(self.place, self.signals, has_processes=zygote is not None)
        self.ear = Ear(backend, self._selector)
        chores = (self.chores, self.bookkeeping, self.hearing)
        self._parts = (self.loop, self.leases, self.limits, *chores, self.shutdown, crew)
        self._recoveries = 0
        self._reconcile_at = 0.0
        self._failed = False

    def run(self) -> int:
        """Work; return the exit status: 0 if everything that was taken is stored or given back."""
        self._begin()
        while not self._is_over():
            self._wait()
            self.shutdown.act()
            self.limits.act()
            self.leases.act()
            self.loop.turn()
            self.hearing.act()
            self.chores.act()
            self.bookkeeping.act()
            self._reconcile()
            if self.place.crew.due <= SYSTEM.monotonic() and not self.place.stopping:
                self.place.crew.fill()
        return self._end()

    def _begin(self) -> None:
        self.place.backend.bound_silence(silence(self.place.options.lease))
        self._selector.register(self.signals.bell, selectors.EVENT_READ, self.signals)
        if self.place.options.stop_at_eof:
            Parent(self.signals, self._selector)
        if self._zygote is not None:
            self._selector.register(self._zygote.channel, selectors.EVENT_READ, self._zygote)
        self.ear.open()
        self.chores.tell_news()
        self.bookkeeping.set_clock()
        signals.worker_started.send_robust(sender=None, worker=self.place.teller.worker)
        self.place.crew.fill()

    # One turn

    def _wait(self) -> None:
        """Wait for a word, a signal, a wake-up, or the next thing that is due."""
        now = SYSTEM.monotonic()
        soonest = min(part.due for part in self._parts)
        if self.place.reach.is_out(now):
            soonest = max(soonest, min(self.place.reach.out_until, self.limits.due, self.shutdown.due))
        elif self.loop.limit > 0:
            soonest = min(soonest, self.ear.due)
        ready = self._selector.select(min(_LONGEST_WAIT, max(0.0, soonest - now)))
        # A process that was stopped meanwhile comes back with nothing; yet what has come in is to be heard first.
        ready = ready or self._selector.select(0)
        for key, events in ready:
            self._attend(key.data, events)
        if self.loop.limit > 0 and self.ear.due <= SYSTEM.monotonic() and self.ear.hear():
            self.loop.woken()

    def _attend(self, source: object, events: int) -> None:
        if isinstance(source, Member):
            if source.pid is None and self._zygote is not None:
                self._hear_zygote(self._zygote)  # the log is to name it, whatever it says
            if source not in self.place.crew.members:
                return  # its death was told in the same breath
            if events & selectors.EVENT_WRITE:
                source.send()
                self.place.crew.watch(source)
            if events & selectors.EVENT_READ:
                self.hearing.hear(source)
                if source.deaf and source.thread is not None and source in self.place.crew.members:
                    self._mourn(source, 1)  # where there is no process, this is how its end shows
        elif isinstance(source, Zygote):
            self._hear_zygote(source)
        elif isinstance(source, Ear):
            if source.hear():
                self.loop.woken()
        elif isinstance(source, (Signals, Parent)):
            source.hear()

    def _hear_zygote(self, zygote: Zygote) -> None:
        crew = self.place.crew
        try:
            for what, about, *death in zygote.hear():
                if what == "forked":
                    crew.named(about)
                elif what == "unforked":
                    self._do_without(crew.unforked(), about)
                elif (member := crew.member(about)) is not None:
                    self._mourn(member, *death)
        except ConnectionResetError:
            self._end_without_zygote()

    def _mourn(self, member: Member, status: int, silenced: bool = False) -> None:
        """Read an executor's last words, settle what it left, and have it replaced.

        ``silenced`` says that the zygote has ended it, as this process was silent for too long.
        """
        self.hearing.hear(member, LAST_READS)
        if not (member.doomed or (member.ready and (member.given or not member.broken))):
            pause = self.place.crew.failed_to_start()
            logger.error(
                "Executor %s ended with status %s before it was ready; %.1f s until the next", member.pid, status, pause
            )
        deaths.bury(self.place, member, status, silenced=silenced)
        self._replace()

    def _do_without(self, member: Member, why: str) -> None:
        """Give back what an executor was to run that the system would not fork."""
        pause = self.place.crew.failed_to_start()
        logger.error("No executor can be forked: %s; %.1f s until the next try", why, pause)
        member.doomed = True
        deaths.bury(self.place, member, 0)
        self._replace()

    def _replace(self) -> None:
        if not self.place.stopping:
            self.place.crew.fill()
        self.place.crew.isolate()

    def _end_without_zygote(self) -> None:
        """The parent of all executors is dead, and so are they; this process can make no new ones."""
        if self._failed:
            return
        logger.critical("The process that forks executors died: this worker ends; start it again")
        self._failed = True
        self._selector.unregister(self._zygote.channel)  # type: ignore[union-attr]
        self.shutdown.begin()
        for member in list(self.place.crew.members):
            if member.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
            end = SYSTEM.monotonic() + 1.0
            while not member.deaf and (left := end - SYSTEM.monotonic()) > 0:
                select.select([member.channel], [], [], left)
                self.hearing.hear(member)
            deaths.bury(self.place, member, -signal.SIGKILL)

    def _reconcile(self) -> None:
        """After the database was out of reach, give back what this worker holds and does not know of."""
        if self._recoveries == self.place.reach.recoveries or SYSTEM.monotonic() < self._reconcile_at:
            return
        self._reconcile_at = SYSTEM.monotonic() + POSTPONED_FOR
        known = {held.key for held in self.place.holdings.everything()}
        mine = self.place.reach.ask(lambda: self.place.backend.held_by(self.place.owner))
        if mine is None:
            return
        failure = Failure.of(Ending.RELEASED, message="its worker lost sight of it while the database was out of reach")
        offer = Settlement("", 0, self.place.owner, Move.RELEASE, failure=failure)
        unknown = [offer._replace(id=job_id, fence=fence) for job_id, fence in mine if (job_id, fence) not in known]
        if unknown:
            logger.warning("Giving %d jobs back whose claim was lost on the way", len(unknown))
            cycle = self.place.reach.ask(lambda: self.place.backend.cycle(self.place.owner, unknown))
            if cycle is None or cycle.postponed:  # rows that others have locked are offered again
                return
        self._recoveries = self.place.reach.recoveries

    # The end

    def _is_over(self) -> bool:
        place, options = self.place, self.place.options
        if not place.stopping:
            done = options.max_jobs is not None and self.loop.taken >= options.max_jobs and not len(place.holdings)
            if done or (options.drain and self.loop.is_drained()):
                place.stopping = True
        if not place.stopping:
            return False
        return not len(place.holdings) or SYSTEM.monotonic() > self.shutdown.last_words

    def _see_off(self) -> None:
        """Let executors exit in peace: they may have signals to send, and a container ends with this process."""
        crew, began = self.place.crew, SYSTEM.monotonic()
        if self.place.teller.untold and not self._failed:
            crew.fill()
            self._attend_until(began + _LAST_SIGNALS, lambda: not self.place.teller.untold)
        is_listened_to = crew.listener() is not None
        crew.tell_all_to_exit()
        if not self._failed:
            self._attend_until(began + (_LAST_SIGNALS if is_listened_to else _LAST_MOMENT), lambda: not crew.members)

    def _attend_until(self, end: float, is_done: Callable[[], bool]) -> None:
        while not is_done() and (left := end - SYSTEM.monotonic()) > 0:
            for key, events in self._selector.select(left):
                self._attend(key.data, events)

    def _end(self) -> int:
        place = self.place
        self.hearing.act()
        self._see_off()
        self.ear.close()
        self.bookkeeping.close()
        place.reach.ask(lambda: place.backend.dismiss(place.owner))
        if len(place.holdings):
            logger.critical(
                "%d jobs could not be given back or their outcomes not be stored; they run again when their leases "
                "have ended",
                len(place.holdings),
            )
        self._selector.close()
        self.signals.close()
        signals.worker_stopped.send_robust(sender=None, worker=place.teller.worker)
        return 1 if self._failed or len(place.holdings) else 0
