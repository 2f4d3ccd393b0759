"""The executors of a worker: who they are, what each runs, and what passes between them and the supervisor."""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Iterable
from selectors import BaseSelector

from jobqueue.clock import SYSTEM
from jobqueue.worker import wire
from jobqueue.worker.executor import Executor, Plan
from jobqueue.worker.holdings import NEVER, Held, Holdings
from jobqueue.worker.member import Member
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.wire import Word
from jobqueue.worker.zygote import Zygote

#: How many suspects of a crash run at a time: one that takes long must not keep the innocent waiting behind it, and
#: those that ate the memory together shall not do it again.
SOLO_AT_ONCE = 4
#: Executors that die before they are ready are started again after pauses that grow up to so many seconds.
LONGEST_PAUSE = 30.0


class Crew:
    """Keeps as many executors as it is told to, gives claims to them, and replaces those that leave or die."""

    def __init__(
        self, plan: Plan, options: WorkerOptions, zygote: Zygote | None, selector: BaseSelector, holdings: Holdings
    ) -> None:
        self.plan = plan
        self.processes = max(1, options.processes)
        self._most = options.max_jobs_per_process or NEVER
        self.members: list[Member] = []
        self.suspects: deque[Held] = deque()
        self._zygote = zygote
        self._holdings = holdings
        self._selector = selector
        self._unnamed: deque[Member] = deque()
        self._stillborn = 0
        self._fill_at = 0.0

    @property
    def missing(self) -> int:
        """How many executors are to be started."""
        return self.processes - sum(not one.leaving and not one.alone for one in self.members)

    @property
    def due(self) -> float:
        """When to start executors that are missing."""
        return self._fill_at if self.missing > 0 else NEVER

    def fill(self) -> None:
        """Start the executors that are missing; a pause keeps a fault of their beginning from forking without end."""
        if SYSTEM.monotonic() >= self._fill_at:
            for _ in range(self.missing):
                self._start(self.plan.slots, most=self._most)

    def born(self, member: Member, *, listening: bool) -> None:
        """Note that an executor is ready."""
        member.ready, member.listening = True, listening
        self._stillborn = 0

    def failed_to_start(self) -> float:
        """Note that an executor died before it was ready; say how long the next one is put off."""
        pause: float = min(0.1 * 2**self._stillborn, LONGEST_PAUSE)
        self._stillborn = min(self._stillborn + 1, 16)
        self._fill_at = SYSTEM.monotonic() + pause
        return pause

    def _start(self, size: int, *, most: float = NEVER, alone: bool = False) -> Member:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        member = Member(ours, size, most=most, alone=alone)
        self.members.append(member)
        self._selector.register(ours, selectors.EVENT_READ, member)
        if self._zygote is None:
            serve = Executor(theirs, self.plan).serve
            member.thread = threading.Thread(target=serve, name="jobqueue-executor", daemon=True)
            member.thread.start()
        else:
            self._unnamed.append(member)
            self._zygote.fork(theirs)
            theirs.close()
        return member

    # Giving

    @property
    def free(self) -> int:
        """How many more jobs may be claimed; suspects take of the slots there are, though they run elsewhere."""
        regular = sum(one.free for one in self.members if not one.alone)
        solo = len(self.suspects) + sum(len(one.held) for one in self.members if one.alone)
        return max(0, regular - solo)

    def give(self, several: Iterable[Held]) -> None:
        """Have claims run: each where the most slots are free, suspects of a crash alone."""
        free = {one: one.free for one in self.members if not one.alone}
        rows: dict[Member, list[Held]] = {member: [] for member in free}
        for held in several:
            if held.claim.crash_count and self._zygote is not None:
                held.deadline = NEVER
                self.suspects.append(held)
                continue
            member = max(free, key=free.__getitem__)
            free[member] -= 1
            rows[member].append(held)
        for member, given in rows.items():
            if given:
                self._assign(member, given)
        self.isolate()

    def isolate(self) -> None:
        """Start the next suspects, each in an executor of its own."""
        while self.suspects and sum(one.alone for one in self.members) < max(SOLO_AT_ONCE, self.processes):
            held = self.suspects.popleft()
            self._holdings.begin_anew(held, SYSTEM.monotonic())
            member = self._start(1, alone=True)
            self._assign(member, [held])
            self.retire(member)

    def _assign(self, member: Member, given: list[Held]) -> None:
        member.given += len(given)
        for held in given:
            held.member = member
            member.held[held.key] = held
        member.say(Word.ASSIGN, [wire.assignment_row(held.claim) for held in given])
        self.watch(member)
        if member.given >= member.most:
            self.retire(member)
            self.fill()

    # Hearing

    def watch(self, member: Member) -> None:
        """Wait for a member's words, and for room to say what could not be sent."""
        if member.deaf or member not in self.members:
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if member.unsent else 0)
        if self._selector.get_key(member.channel).events != events:
            self._selector.modify(member.channel, events, member)

    def hang_up(self, member: Member) -> None:
        """Listen no more to an executor whose channel is closed; if it is alive all the same, it is ended."""
        self._selector.unregister(member.channel)
        if self._zygote is not None and member.pid is not None and (member.held or not member.leaving):
            self._zygote.kill(member.pid)  # not doomed by us: it is settled as the crash that it is

    def end(self, member: Member, why: str) -> None:
        """Listen no more to an executor that is broken, and end it; it is settled as the crash that it is."""
        member.broken, member.deaf, member.leaving = why, True, True
        self._selector.unregister(member.channel)
        if self._zygote is not None and member.pid is not None:
            self._zygote.kill(member.pid)

    def unforked(self) -> Member:
        """Forget the executor that was asked for first: the system would not fork it."""
        member = self._unnamed.popleft()
        self.remove(member)
        return member

    def named(self, pid: int) -> None:
        """Note the process id of the executor that was asked for first."""
        member = self._unnamed.popleft()
        member.pid = pid
        if member.doomed:
            self.kill(member)
        elif member.deaf and self._zygote is not None:
            self._zygote.kill(pid)

    def member(self, pid: int) -> Member | None:
        """Find the executor with a process id."""
        return next((one for one in self.members if one.pid == pid), None)

    # Leaving

    def retire(self, member: Member) -> None:
        """Give it nothing more; it exits when it has nothing left to do."""
        member.leaving = True
        self.dismiss_if_idle(member)

    def dismiss_if_idle(self, member: Member) -> None:
        """Let a leaving member go once it holds nothing."""
        if member.leaving and not member.held:
            member.say(Word.EXIT)
            self.watch(member)
            if self._zygote is None:
                self.remove(member)

    def kill(self, member: Member) -> None:
        """End an executor at once, where it is a process."""
        member.leaving = member.doomed = True
        if self._zygote is not None and member.pid is not None:
            self._zygote.kill(member.pid)

    def remove(self, member: Member) -> None:
        """Forget an executor that is gone."""
        if member in self.members:
            self.members.remove(member)
            if not member.deaf:
                self._selector.unregister(member.channel)
            member.channel.close()

    def tell_all(self, word: Word, content: object = None) -> None:
        """Say something to everyone."""
        for member in self.members:
            member.say(word, content)
            self.watch(member)

    def tell_all_to_exit(self) -> None:
        """End those that are left; in this process, wait until they have let go of their connections."""
        for member in self.members:
            member.leaving = True
        self.tell_all(Word.EXIT)
        for member in list(self.members):
            if member.thread is not None:
                member.thread.join(2.0)
                self.remove(member)

    def listener(self) -> Member | None:
        """Find an executor in which somebody listens to signals, and which will read what it is told."""
        able = (one for one in self.members if one.listening and not (one.doomed or one.deaf or one.leaving))
        return next(able, None)
