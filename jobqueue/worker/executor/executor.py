"""The process, or with ``--processes 0`` the thread, that runs handlers. It reads assignments and sends outcomes."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jobqueue import backends, signals, tracing
from jobqueue.backends.sqlite import memory as sqlite_memory
from jobqueue.clock import NEVER, SYSTEM
from jobqueue.errors import Interrupted, StopReason
from jobqueue.handlers.registry import registry
from jobqueue.observe import announce
from jobqueue.records import Assignment, ClaimKey, Event, EventKind
from jobqueue.worker.executor import connections, forks
from jobqueue.worker.executor.attempt import Outcome, Running, failed, perform, refused
from jobqueue.worker.executor.coroutines import Coroutines
from jobqueue.worker.executor.outgoing import Outgoing
from jobqueue.worker.executor.serial_slots import SerialSlots
from jobqueue.worker.executor.slots import Slots
from jobqueue.worker.options import Plan
from jobqueue.worker.protocol import wire
from jobqueue.worker.protocol.wire import Word

#: How soon a computing handler yields the interpreter lock to its neighbours, at no measurable cost.
SWITCH_INTERVAL = 0.0005
#: The seconds between two messages with progress reports.
REPORT_EVERY = 0.1
#: The exit status of an executor that could not finish a job.
_BROKEN = 70
#: The seconds in which traces are sent before an executor ends.
_LONGEST_FLUSH = 2.0
#: Traces whose jobs are being settled. The oldest are given up, because a settlement may be refused without a word.
_MOST_TRACES = 10_000

logger = logging.getLogger("jobqueue")


class Executor:
    """Runs its assignments until its channel closes or it is told to exit."""

    def __init__(self, channel: socket.socket, plan: Plan, *, may_exit: bool = False) -> None:
        self._channel = channel
        self._may_exit = may_exit
        self._reporting = threading.Lock()
        self._outgoing = Outgoing(channel, plan.full)
        self._slots: Slots[Running] = Slots(plan.slots, self._run, connections.give_up_all, self._outgoing)
        self._serial_slots: SerialSlots[Running] = SerialSlots(
            plan.slots, self._run, connections.give_up_all, self._outgoing
        )
        self._takes_turns = backends.current().takes_turns
        self._its_turn = sqlite_memory.turns()
        self._coroutines: Coroutines | None = None
        self._running: dict[ClaimKey, Running] = {}
        #: The traces of attempts whose outcome isn't stored yet.
        self._traces: dict[ClaimKey, tracing.AttemptTrace] = {}
        self._threads: dict[ClaimKey, int] = {}
        self._struck: set[ClaimKey] = set()
        self._reports: dict[ClaimKey, str] = {}
        self._receivers = announce.Receivers(self._its_turn)
        self._nudge, self._nudged = socket.socketpair()
        forks.tell(self._forget)
        self._told: dict[Word, Callable[[Any], None]] = {
            Word.ASSIGN: self._assign,
            Word.STOP: self._stop,
            Word.DRAIN: self._drain,
            Word.EVENTS: self._receivers.tell,
            Word.SETTLED: self._settled,
        }

    def _forget(self) -> None:
        """In a child that a handler forked, close the sockets that belong to the executor."""
        for own in (self._channel, self._nudge, self._nudged):
            own.close()
        if self._coroutines is not None:
            self._coroutines.forget()

    def serve(self) -> None:
        """Work until told to exit. A closed channel means that the supervisor is dead."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        with self._its_turn():
            signals.executor_started.send_robust(sender=None, pid=os.getpid())
        signaled, traced = announce.is_anybody_listening(), bool(tracing.in_use())
        self._outgoing.say(Word.READY, {"pid": os.getpid(), "listening": signaled, "tracing": traced})
        inbox = wire.Inbox()
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(self._nudged, selectors.EVENT_READ)
            next_report: float | None = None
            while True:
                soonest = min(next_report or NEVER, self._serial_slots.due)
                wait = None if soonest == NEVER else max(0.0, soonest - SYSTEM.monotonic())
                ready = {key.fileobj for key, _ in selector.select(wait)}
                self._serial_slots.look()
                if self._nudged in ready:
                    self._nudged.recv(64)
                    next_report = next_report or SYSTEM.monotonic() + REPORT_EVERY
                if next_report is not None and SYSTEM.monotonic() >= next_report:
                    next_report = None
                    self._send_reports()
                if self._channel in ready and not self._hear(inbox):
                    return

    def _hear(self, inbox: wire.Inbox) -> bool:
        """Read messages of the supervisor. Return whether to go on."""
        try:
            data = self._channel.recv(wire.AT_ONCE)
        except ConnectionResetError:
            data = b""
        if not data:
            self._stop([[*claim, StopReason.LEASE_LOST] for claim in list(self._running)])
            return False
        for word, content in inbox.feed(data):
            if word is Word.EXIT:
                self._close()
                return False
            self._told[word](content)
        return True

    def _close(self) -> None:
        """End the threads of this executor and their connections."""
        self._receivers.finish()
        self._slots.close()
        self._serial_slots.close()
        if self._coroutines is not None:
            self._coroutines.close()
        connections.give_up_all()
        tracing.flush(_LONGEST_FLUSH)

    # Running

    def _assign(self, rows: list[wire.Row]) -> None:
        several = [Running(one, self._report) for one in wire.assignments(rows)]
        for running in several:
            self._running[running.assignment.claim] = running
        if announce.is_anybody_listening():
            self._receivers.tell([_event(EventKind.STARTED, one.assignment) for one in several])
        coroutines = [one for one in several if registry.is_async(one.assignment.type)]
        if coroutines:
            if self._coroutines is None:
                self._coroutines = Coroutines(self._done, self._outgoing.flush, self._its_turn)
            self._coroutines.submit(coroutines)
            several = [one for one in several if one not in coroutines]
        if self._takes_turns:
            in_turn = [one for one in several if registry.is_atomic(one.assignment.type)]
            if in_turn:
                self._serial_slots.submit(in_turn)
                several = [one for one in several if not registry.is_atomic(one.assignment.type)]
        if several:
            self._slots.submit(several)

    def _run(self, running: Running) -> None:
        try:
            self._run_and_tell(running)
        except BaseException:
            # Our own failure, not the handler's, perhaps for lack of memory. The supervisor settles it as a crash.
            logger.critical("Job %s could not be finished", running.assignment.id, exc_info=True)
            if self._may_exit:
                os._exit(_BROKEN)

    def _run_and_tell(self, running: Running) -> None:
        with self._its_turn():
            outcome = self._run_and_tidy(running)
        self._done(running, outcome)

    def _run_and_tidy(self, running: Running) -> Outcome:
        claim, is_struck = running.assignment.claim, False
        try:
            outcome = self._interruptible(claim, running)
        except Interrupted as error:
            is_struck = True
            outcome = failed(running, error)
        forks.end_copy(running.generation)  # the application's code also runs outside of handlers
        if is_struck or claim in self._struck:
            self._struck.discard(claim)
            connections.give_up_all()  # the interruption may have hit in the middle of a statement
        elif not running.is_at_work or outcome.is_for_want_of_database:
            # is_usable() would be true, but a SQLite file that was opened read-only stays read-only for its connection.
            connections.give_up_all()
        else:
            connections.renew()
        return outcome

    def _interruptible(self, claim: ClaimKey, running: Running) -> Outcome:
        """Run a handler so that an interruption meant for it can never hit the code after it.

        Both the slot and ``_interrupt`` take the claim out of ``_threads``. If the slot is first, there is no
        interruption. If ``_interrupt`` is first, the slot waits here until the exception is set, which is raised before
        this method returns.
        """
        self._threads[claim] = threading.get_ident()
        try:
            if running.reason is not None and running.reason is not StopReason.SHUTDOWN:
                raise Interrupted(running.reason)
            return perform(running)
        finally:
            if self._threads.pop(claim, None) is None:
                while claim not in self._struck:
                    time.sleep(0)

    def _done(self, running: Running, outcome: Outcome) -> None:
        self._running.pop(running.assignment.claim, None)
        if running.trace is not None and outcome.settlement is not None and not outcome.stored:
            self._keep(running.assignment.claim, running.trace)
        if outcome.stored:
            keep = self._outgoing.keep if self._takes_turns else self._outgoing.put
            keep(wire.stored_row(running.assignment.claim, outcome.followed))
        elif outcome.settlement is None:
            self._outgoing.put(wire.lost_row(running.assignment.claim))
        else:
            settlement = running.with_report(outcome.settlement)
            size = wire.size_of(settlement)
            if size and wire.is_too_long(settlement, size):
                settlement, size = refused(running, size), 0
            self._outgoing.put(wire.settlement_row(settlement), size)

    # Traces

    def _keep(self, claim: ClaimKey, trace: tracing.AttemptTrace) -> None:
        """Keep a trace until its outcome is stored."""
        self._traces[claim] = trace
        while len(self._traces) > _MOST_TRACES:
            with contextlib.suppress(StopIteration, RuntimeError, KeyError):  # other threads add and remove some
                del self._traces[next(iter(self._traces))]

    def _settled(self, rows: Iterable[Sequence[Any]]) -> None:
        for job_id, fence, seconds in rows:
            if (trace := self._traces.pop((job_id, fence), None)) is not None:
                trace.settled(seconds)

    # Requests to stop

    def _stop(self, asked: Iterable[Sequence[Any]]) -> None:
        for job_id, fence, reason in asked:
            running = self._running.get((job_id, fence))
            if running is not None:
                running.reason = StopReason(reason)
                if running.reason is not StopReason.SHUTDOWN:
                    self._interrupt(running)

    def _interrupt(self, running: Running) -> None:
        """Raise Interrupted in the thread of an attempt, or cancel its task. If it still waits, end it at once."""
        claim = running.assignment.claim
        thread = self._threads.pop(claim, None)
        if thread is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupted))
            self._struck.add(claim)
            return
        self._serial_slots.hurry(running)
        if self._coroutines is not None:
            self._coroutines.interrupt(claim)

    def _drain(self, _: object) -> None:
        for running in list(self._running.values()):
            running.reason = running.reason or StopReason.SHUTDOWN

    # Progress

    def _report(self, assignment: Assignment, text: str) -> None:
        with self._reporting:
            is_first = not self._reports
            self._reports[assignment.claim] = text
        if is_first:
            self._nudge.send(b"!")
        if signals.progressed.has_listeners():
            self._receivers.tell([_event(EventKind.PROGRESSED, assignment)._replace(progress=text)])

    def _send_reports(self) -> None:
        with self._reporting:
            reports, self._reports = self._reports, {}
        self._outgoing.say(Word.PROGRESS, [[*claim, text] for claim, text in reports.items()])


def _event(kind: EventKind, one: Assignment) -> Event:
    return Event(kind, one.id, one.type, one.queue, one.attempt, one.max_retries, one.owner)
