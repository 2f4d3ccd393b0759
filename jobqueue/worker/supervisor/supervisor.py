"""The main loop of the supervisor."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import selectors
import signal
from collections.abc import Callable
from typing import Protocol

from jobqueue import signals, tracing
from jobqueue.backends.base import Backend
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_owner
from jobqueue.records import Ending, Failure, Settlement
from jobqueue.states import Move
from jobqueue.worker.database_link import DatabaseLink
from jobqueue.worker.heartbeat_file import kept
from jobqueue.worker.options import Plan, WorkerOptions
from jobqueue.worker.parent import Parent
from jobqueue.worker.signals import Signals
from jobqueue.worker.supervisor import crashes
from jobqueue.worker.supervisor.claims import POSTPONED_FOR, Claims, silence
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.deaths import Deaths
from jobqueue.worker.supervisor.duties import DUTIES
from jobqueue.worker.supervisor.duties.roster import Roster
from jobqueue.worker.supervisor.events import Events
from jobqueue.worker.supervisor.executor_link import LAST_READS, ExecutorLink
from jobqueue.worker.supervisor.executors import Executors, InThread
from jobqueue.worker.supervisor.leases import Leases
from jobqueue.worker.supervisor.limits import Limits
from jobqueue.worker.supervisor.loop import Loop
from jobqueue.worker.supervisor.metrics.flush import MetricsFlush
from jobqueue.worker.supervisor.outcomes import Outcomes
from jobqueue.worker.supervisor.shutdown import Shutdown
from jobqueue.worker.supervisor.turns import Turns
from jobqueue.worker.wake_listener import WakeListener
from jobqueue.worker.worker_lock import WorkerLock
from jobqueue.worker.zygote.zygote import Zygote

logger = logging.getLogger("jobqueue")

_LONGEST_WAIT = 5.0
#: Seconds to wait for another writer. A supervisor also serves signals, limits and executors that die.
_PATIENCE = 0.25
#: Seconds in which executors must exit: more if they still have signals to send.
_SIGNALS_GRACE = 5.0
_EXIT_GRACE = 0.5


class Part(Protocol):
    """A part of the supervisor with work of its own besides reading messages."""

    @property
    def due(self) -> float:
        """Return when there is something to do."""
        ...

    def act(self) -> None:
        """Do the work that is due."""
        ...


class Supervisor:
    """Runs one worker until it is told to stop, has taken ``--max-jobs`` jobs, or is drained."""

    def __init__(
        self,
        backend: Backend,
        alias: str,
        options: WorkerOptions,
        types: frozenset[str],
        plan: Plan,
        zygote: Zygote | None,
        in_thread: InThread,
        lock: WorkerLock | None = None,
    ) -> None:
        if zygote is not None:  # otherwise handlers share the backend and its patience
            backend.patience = _PATIENCE
        self.signals = Signals()
        self._selector = selectors.DefaultSelector()
        self._zygote = zygote
        claims, owner = Claims(), new_owner()
        executors = Executors(plan, options, zygote, in_thread, self._selector, claims)
        self.context = WorkerContext(
            backend=backend,
            owner=owner,
            options=options,
            claims=claims,
            executors=executors,
            database=DatabaseLink(alias, claims.__len__, options.lease, backend.lies_in_row),
            events=Events(executors, options.name or owner),
            lock=lock,
            types=types,
        )
        self.limits = Limits(self.context, may_kill=zygote is not None)
        self.leases = Leases(self.context, self.limits, zygote)
        self.loop = Loop(self.context, types, self.leases.guard)
        self.deaths = Deaths(self.context, self.loop.woken)
        self.duties = Roster(self.context, DUTIES)
        self.metrics_flush = MetricsFlush(self.context)
        self.outcomes = Outcomes(self.context)
        self.shutdown = Shutdown(self.context, self.signals, has_processes=zygote is not None)
        self.wake_ups = WakeListener(backend, self._selector)
        heartbeats = kept(options.heartbeat, self.context.obstacle)
        last: tuple[Part, ...] = (self.outcomes, self.duties, self.metrics_flush, *heartbeats)
        #: The parts, in the order in which they act.
        self._parts: tuple[Part, ...] = (self.shutdown, self.limits, self.leases, self.deaths, self.loop, *last)
        self.turns = Turns()
        self._recoveries, self._reconcile_at, self._failed = 0, 0.0, False

    def run(self) -> int:
        """Run jobs until it is time to stop. Return 0 if all claimed jobs were settled or given back."""
        self._begin()
        while not self._is_over():
            self._wait()
            began = SYSTEM.monotonic()
            for part in self._parts:
                part.act()
            self.turns.add(SYSTEM.monotonic() - began)
            self._reconcile()
            if self.context.executors.due <= SYSTEM.monotonic() and not self.context.stopping:
                self.context.executors.fill()
        return self._end()

    def _begin(self) -> None:
        self.context.backend.bound_silence(silence(self.context.options.lease))
        self._selector.register(self.signals.bell, selectors.EVENT_READ, self.signals)
        if self.context.options.stop_at_eof:
            Parent(self.signals, self._selector)
        if self._zygote is not None:
            self._selector.register(self._zygote.channel, selectors.EVENT_READ, self._zygote)
        self.wake_ups.open()
        if self.context.lock:
            self.context.lock.sign(self.context.owner)
        self.duties.begin()
        self.metrics_flush.set_clock()
        tracing.prepare()
        signals.worker_started.send_robust(sender=None, worker=self.context.events.worker)
        self.context.executors.fill()

    # One turn

    def _wait(self) -> None:
        """Wait for a message, a signal, a wake-up, or the next part that is due, and handle the event."""
        now = SYSTEM.monotonic()
        soonest = min(self.context.executors.due, *(part.due for part in self._parts))
        if self.context.database.is_out(now):
            soonest = max(soonest, min(self.context.database.out_until, self.limits.due, self.shutdown.due))
        elif self.loop.limit > 0:
            soonest = min(soonest, self.wake_ups.due)
        ready = self._selector.select(min(_LONGEST_WAIT, max(0.0, soonest - now)))
        # A process that was stopped meanwhile returns nothing here, but there may be messages to read first.
        ready = ready or self._selector.select(0)
        for key, events in ready:
            self._attend(key.data, events)
        if self.loop.limit > 0 and self.wake_ups.due <= SYSTEM.monotonic() and self.wake_ups.hear():
            self.loop.woken()

    def _attend(self, source: object, events: int) -> None:
        if isinstance(source, ExecutorLink):
            if source.pid is None and self._zygote is not None:
                self._hear_zygote(self._zygote)  # its pid, for the log
            if source not in self.context.executors.links:
                return  # the same messages reported its death
            if events & selectors.EVENT_WRITE:
                source.send()
                self.context.executors.watch(source)
            if events & selectors.EVENT_READ:
                self.outcomes.hear(source)
                if source.deaf and source.thread is not None and source in self.context.executors.links:
                    self._settle_dead(source, 1)  # the end of an executor that is a thread
        elif isinstance(source, Zygote):
            self._hear_zygote(source)
        elif isinstance(source, WakeListener):
            if source.hear():
                self.loop.woken()
        elif isinstance(source, (Signals, Parent)):
            source.hear()

    def _hear_zygote(self, zygote: Zygote) -> None:
        executors = self.context.executors
        try:
            for what, about, *death in zygote.hear():
                if what == "forked":
                    executors.named(about)
                elif what == "unforked":
                    self._give_up_unforked(executors.unforked(), about)
                elif (link := executors.link(about)) is not None:
                    self._settle_dead(link, *death)
        except ConnectionResetError:
            self._end_without_zygote()

    def _settle_dead(self, link: ExecutorLink, status: int, silenced: bool = False) -> None:
        """Read an executor's last messages, settle its jobs, and replace it.

        ``silenced`` means that the zygote killed it because this process was silent for too long.
        """
        self.outcomes.hear(link, LAST_READS)
        if not (link.doomed or (link.ready and (link.given or not link.broken))):
            pause = self.context.executors.failed_to_start()
            logger.error(
                "Executor %s ended with status %s before it was ready; %.1f s until the next", link.pid, status, pause
            )
        crashes.settle_crashed(self.context, link, status, silenced=silenced)
        self._replace()

    def _give_up_unforked(self, link: ExecutorLink, why: str) -> None:
        """Give back the jobs of an executor that the system would not fork."""
        pause = self.context.executors.failed_to_start()
        logger.error("No executor can be forked: %s; %.1f s until the next try", why, pause)
        link.doomed = True
        crashes.settle_crashed(self.context, link, 0)
        self._replace()

    def _replace(self) -> None:
        if not self.context.stopping:
            self.context.executors.fill()
        self.context.executors.isolate()

    def _end_without_zygote(self) -> None:
        """End this worker. The zygote is dead, so its executors die with it, and no others can be forked."""
        if self._failed:
            return
        logger.critical("The process that forks executors died, so this worker ends. Start it again.")
        self._failed = True
        self._selector.unregister(self._zygote.channel)  # type: ignore[union-attr]
        self.shutdown.begin()
        for link in list(self.context.executors.links):
            if link.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(link.pid, signal.SIGKILL)
            end = SYSTEM.monotonic() + 1.0
            while not link.deaf and (left := end - SYSTEM.monotonic()) > 0:
                select.select([link.channel], [], [], left)
                self.outcomes.hear(link)
            crashes.settle_crashed(self.context, link, -signal.SIGKILL)

    def _reconcile(self) -> None:
        """After the database was out of reach, give back claims that this worker holds but doesn't know of."""
        if self._recoveries == self.context.database.recoveries or SYSTEM.monotonic() < self._reconcile_at:
            return
        self._reconcile_at = SYSTEM.monotonic() + POSTPONED_FOR
        known = {held.key for held in self.context.claims.everything()}
        mine = self.context.database.ask(lambda: self.context.backend.held_by(self.context.owner))
        if mine is None:
            return
        failure = Failure.of(Ending.RELEASED, message="its worker lost sight of it while the database was out of reach")
        offer = Settlement("", 0, self.context.owner, Move.RELEASE, failure=failure)
        unknown = [offer._replace(id=job_id, fence=fence) for job_id, fence in mine if (job_id, fence) not in known]
        if unknown:
            logger.warning("Giving back %d jobs whose claim was lost on the way", len(unknown))
            cycle = self.context.database.ask(lambda: self.context.backend.cycle(self.context.owner, unknown))
            if cycle is None or cycle.postponed:  # rows that others have locked are offered again
                return
        self._recoveries = self.context.database.recoveries

    # The end

    def _is_over(self) -> bool:
        context, options = self.context, self.context.options
        if not context.stopping:
            done = options.max_jobs is not None and self.loop.taken >= options.max_jobs and not len(context.claims)
            if done or (options.drain and self.loop.is_drained()):
                context.stopping = True
        if not context.stopping:
            return False
        return not len(context.claims) or SYSTEM.monotonic() > self.shutdown.last_words

    def _dismiss_executors(self) -> None:
        """Let executors exit normally: they may have signals to send, and a container ends with this process."""
        executors, began = self.context.executors, SYSTEM.monotonic()
        if self.context.events.untold and not self._failed:
            executors.fill()
            self._attend_until(began + _SIGNALS_GRACE, lambda: not self.context.events.untold)
        is_listened_to = executors.listener() is not None
        executors.tell_all_to_exit()
        if not self._failed:
            self._attend_until(began + (_SIGNALS_GRACE if is_listened_to else _EXIT_GRACE), lambda: not executors.links)

    def _attend_until(self, end: float, is_done: Callable[[], bool]) -> None:
        while not is_done() and (left := end - SYSTEM.monotonic()) > 0:
            for key, events in self._selector.select(left):
                self._attend(key.data, events)

    def _end(self) -> int:
        context = self.context
        self.outcomes.act()
        self._dismiss_executors()
        self.wake_ups.close()
        self.metrics_flush.close()
        self.deaths.close()
        context.database.ask(lambda: context.backend.workers.dismiss(context.owner))
        if context.lock:
            context.lock.close()
        if len(context.claims):
            logger.critical(
                "%d jobs could not be settled or given back; they run again when their leases run out",
                len(context.claims),
            )
        self._selector.close()
        self.signals.close()
        signals.worker_stopped.send_robust(sender=None, worker=context.events.worker)
        return 1 if self._failed or len(context.claims) else 0
