"""The executors of a worker: their start, their jobs and their end."""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from selectors import BaseSelector

from jobqueue import tracing
from jobqueue.clock import NEVER, SYSTEM
from jobqueue.worker.options import Plan, WorkerOptions
from jobqueue.worker.protocol import wire
from jobqueue.worker.protocol.wire import Word
from jobqueue.worker.supervisor.claims import Claims, HeldClaim
from jobqueue.worker.supervisor.executor_link import ExecutorLink
from jobqueue.worker.zygote.zygote import Zygote

#: How many suspects of a crash run at a time. A slow one must not delay innocent ones behind it, and suspects that
#: exhausted the memory together must not do so again.
SOLO_AT_ONCE = 4
#: The longest pause before an executor that died before it was ready is replaced; pauses grow up to it.
LONGEST_PAUSE = 30.0


#: A function that makes an executor for ``--processes 0``, and returns the function that its thread runs.
InThread = Callable[[socket.socket, Plan], Callable[[], None]]


class Executors:
    """Keeps the given number of executors, assigns claims to them, and replaces those that leave or die."""

    def __init__(
        self,
        plan: Plan,
        options: WorkerOptions,
        zygote: Zygote | None,
        in_thread: InThread,
        selector: BaseSelector,
        claims: Claims,
    ) -> None:
        self.plan = plan
        self.processes = max(1, options.processes)
        self._most = options.max_jobs_per_process or NEVER
        self.links: list[ExecutorLink] = []
        self.suspects: deque[HeldClaim] = deque()
        self._zygote = zygote
        self._in_thread = in_thread
        self._claims = claims
        self._selector = selector
        self._unnamed: deque[ExecutorLink] = deque()
        self._stillborn = 0
        self._fill_at = 0.0
        #: How many executors were started so far.
        self.started = 0
        #: Whether an executor traces jobs. Libraries that the settings set up are in use in all processes.
        self._is_traced = bool(tracing.in_use())

    @property
    def missing(self) -> int:
        """Return how many executors must be started."""
        return self.processes - sum(not one.leaving and not one.alone for one in self.links)

    @property
    def due(self) -> float:
        """Return when to start missing executors."""
        return self._fill_at if self.missing > 0 else NEVER

    def fill(self) -> None:
        """Start missing executors. After a failed start it waits, so that a persistent fault doesn't fork endlessly."""
        if SYSTEM.monotonic() >= self._fill_at:
            for _ in range(self.missing):
                self._start(self.plan.slots, most=self._most)

    def born(self, link: ExecutorLink, *, listening: bool, tracing: bool) -> None:
        """Record that an executor is ready."""
        link.ready, link.listening, link.tracing = True, listening, tracing
        self._is_traced = self._is_traced or tracing
        self._stillborn = 0

    def failed_to_start(self) -> float:
        """Record that an executor died before it was ready. Return the pause before the next start."""
        pause: float = min(0.1 * 2**self._stillborn, LONGEST_PAUSE)
        self._stillborn = min(self._stillborn + 1, 16)
        self._fill_at = SYSTEM.monotonic() + pause
        return pause

    def _start(self, size: int, *, most: float = NEVER, alone: bool = False) -> ExecutorLink:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        link = ExecutorLink(ours, size, most=most, alone=alone)
        link.tracing = self._is_traced
        self.links.append(link)
        self.started += 1
        self._selector.register(ours, selectors.EVENT_READ, link)
        if self._zygote is None:
            link.thread = threading.Thread(
                target=self._in_thread(theirs, self.plan), name="jobqueue-executor", daemon=True
            )
            link.thread.start()
        else:
            self._unnamed.append(link)
            self._zygote.fork(theirs)
            theirs.close()
        return link

    # Assignment

    @property
    def free(self) -> int:
        """Return how many more jobs may be claimed. Suspects count against the slots, though they run elsewhere."""
        regular = sum(one.free for one in self.links if not one.alone)
        solo = len(self.suspects) + sum(len(one.held) for one in self.links if one.alone)
        return max(0, regular - solo)

    def give(self, several: Iterable[HeldClaim]) -> None:
        """Assign claims to the executors with the most free slots. Suspects of a crash run alone."""
        free = {one: one.free for one in self.links if not one.alone}
        rows: dict[ExecutorLink, list[HeldClaim]] = {link: [] for link in free}
        for held in several:
            if held.claim.crash_count and self._zygote is not None:
                held.deadline = NEVER
                self.suspects.append(held)
                continue
            link = max(free, key=free.__getitem__)
            free[link] -= 1
            rows[link].append(held)
        for link, given in rows.items():
            if given:
                self._assign(link, given)
        self.isolate()

    def isolate(self) -> None:
        """Start the next suspects, each in an executor of its own."""
        while self.suspects and sum(one.alone for one in self.links) < max(SOLO_AT_ONCE, self.processes):
            held = self.suspects.popleft()
            self._claims.begin_anew(held, SYSTEM.monotonic())
            link = self._start(1, alone=True)
            self._assign(link, [held])
            self.retire(link)

    def _assign(self, link: ExecutorLink, given: list[HeldClaim]) -> None:
        link.given += len(given)
        for held in given:
            held.link = link
            link.held[held.key] = held
        row_of = wire.traced_assignment_row if link.tracing else wire.assignment_row
        link.say(Word.ASSIGN, [row_of(held.claim) for held in given])
        self.watch(link)
        if link.given >= link.most:
            self.retire(link)
            self.fill()

    # Messages

    def watch(self, link: ExecutorLink) -> None:
        """Select on an executor's messages, and on room for those that could not be sent."""
        if link.deaf or link not in self.links:
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.unsent else 0)
        if self._selector.get_key(link.channel).events != events:
            self._selector.modify(link.channel, events, link)

    def hang_up(self, link: ExecutorLink) -> None:
        """Stop reading an executor whose channel is closed, and kill it unless it is exiting without jobs."""
        self._selector.unregister(link.channel)
        if self._zygote is not None and link.pid is not None and (link.held or not link.leaving):
            self._zygote.kill(link.pid)  # not marked as doomed, so that it is settled as a crash

    def end(self, link: ExecutorLink, why: str) -> None:
        """Stop reading a broken executor, and kill it. Its jobs are settled as after a crash."""
        link.broken, link.deaf, link.leaving = why, True, True
        self._selector.unregister(link.channel)
        if self._zygote is not None and link.pid is not None:
            self._zygote.kill(link.pid)

    def unforked(self) -> ExecutorLink:
        """Forget the executor that was requested first, because the system would not fork it."""
        link = self._unnamed.popleft()
        self.remove(link)
        return link

    def named(self, pid: int) -> None:
        """Set the process id of the executor that was requested first."""
        link = self._unnamed.popleft()
        link.pid = pid
        if link.doomed:
            self.kill(link)
        elif link.deaf and self._zygote is not None:
            self._zygote.kill(pid)

    def link(self, pid: int) -> ExecutorLink | None:
        """Return the executor with a process id."""
        return next((one for one in self.links if one.pid == pid), None)

    # Leaving

    def retire(self, link: ExecutorLink) -> None:
        """Assign nothing more to an executor, which exits when it holds no jobs."""
        link.leaving = True
        self.dismiss_if_idle(link)

    def dismiss_if_idle(self, link: ExecutorLink) -> None:
        """Let a leaving executor exit if it holds no jobs."""
        if link.leaving and not link.held:
            link.say(Word.EXIT)
            self.watch(link)
            if self._zygote is None:
                self.remove(link)

    def kill(self, link: ExecutorLink) -> None:
        """Kill an executor if it is a process."""
        link.leaving = link.doomed = True
        if self._zygote is not None and link.pid is not None:
            self._zygote.kill(link.pid)

    def remove(self, link: ExecutorLink) -> None:
        """Forget an executor that is gone."""
        if link in self.links:
            self.links.remove(link)
            if not link.deaf:
                self._selector.unregister(link.channel)
            link.channel.close()

    def tell_all(self, word: Word, content: object = None) -> None:
        """Send a message to all executors."""
        for link in self.links:
            link.say(word, content)
            self.watch(link)

    def tell_all_to_exit(self) -> None:
        """End the remaining executors. Executors that are threads are waited for until their connections are closed."""
        for link in self.links:
            link.leaving = True
        self.tell_all(Word.EXIT)
        for link in list(self.links):
            if link.thread is not None:
                link.thread.join(2.0)
                self.remove(link)

    def tell_settled(self, several: Iterable[HeldClaim]) -> None:
        """Tell executors that trace jobs that their outcomes were stored, and how long after the attempts' ends."""
        if not self._is_traced:
            return
        now = SYSTEM.monotonic()
        rows: dict[ExecutorLink, list[tuple[str, int, float]]] = {}
        for held in several:
            if held.link is not None and held.link.tracing and held.link in self.links:
                rows.setdefault(held.link, []).append((*held.key, now - held.ended))
        for link, settled in rows.items():
            link.say(Word.SETTLED, settled)
            self.watch(link)

    def listener(self) -> ExecutorLink | None:
        """Return an executor in which signals have receivers and which still reads messages."""
        able = (one for one in self.links if one.listening and not (one.doomed or one.deaf or one.leaving))
        return next(able, None)
