"""The executors of a worker: who they are, what each runs, and what passes between them and the supervisor."""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from jobqueue.clock import SYSTEM
from jobqueue.worker import wire
from jobqueue.worker.executor import Executor, Plan
from jobqueue.worker.holdings import NEVER, Claimed, Held, Holdings
from jobqueue.worker.wire import Word
from jobqueue.worker.zygote import Zygote

#: How many suspects of a crash run at a time: one that takes long must not keep the innocent waiting behind it, and
#: those that ate the memory together shall not do it again.
SOLO_AT_ONCE = 4
_AT_ONCE = 1 << 18


class Member:
    """One executor, seen from the supervisor, which never waits for it: what cannot be sent at once waits here."""

    def __init__(self, channel: socket.socket, size: int, *, alone: bool) -> None:
        self.channel = channel
        self.size = size
        self.alone = alone  # for one suspect
        self.pid: int | None = None
        self.thread: threading.Thread | None = None  # where there are no processes
        self.held: dict[Claimed, Held] = {}
        self.given = 0
        self.leaving = False
        self.doomed = False
        self.ends_at = float("inf")  # when it is killed, its neighbours' grace over
        self.listening = False
        self.inbox = wire.Inbox()
        self._unsent = bytearray()

    @property
    def free(self) -> int:
        """How many more jobs it takes."""
        return 0 if self.leaving else self.size - len(self.held)

    @property
    def unsent(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._unsent)

    def say(self, word: Word, content: object = None) -> None:
        """Send a message, as far as it goes at once."""
        self._unsent += wire.pack(word, content)
        self.send()

    def send(self) -> None:
        """Send what waits, as far as it goes."""
        while self._unsent:
            try:
                sent = self.channel.send(self._unsent)
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()  # it is dead; what it held is settled when that is certain
                return
            del self._unsent[:sent]

    def hear(self) -> Iterator[tuple[Word, Any]]:
        """Read what it says, until there is no more."""
        while True:
            try:
                data = self.channel.recv(_AT_ONCE)
            except (BlockingIOError, ConnectionResetError):
                return
            if not data:
                return
            yield from self.inbox.feed(data)
            if len(data) < _AT_ONCE:
                return


class Crew:
    """Keeps as many executors as it is told to, gives claims to them, and replaces those that leave or die."""

    def __init__(
        self, plan: Plan, processes: int, zygote: Zygote | None, selector: selectors.BaseSelector, holdings: Holdings
    ) -> None:
        self.plan = plan
        self.processes = processes
        self.members: list[Member] = []
        self.suspects: deque[Held] = deque()
        self._zygote = zygote
        self._holdings = holdings
        self._selector = selector
        self._unnamed: deque[Member] = deque()

    def fill(self) -> None:
        """Start the executors that are missing."""
        while sum(not one.leaving and not one.alone for one in self.members) < max(1, self.processes):
            self._start(self.plan.slots, alone=False)

    def _start(self, size: int, *, alone: bool) -> Member:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        member = Member(ours, size, alone=alone)
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
        """How many more jobs may be claimed."""
        regular = sum(one.free for one in self.members if not one.alone)
        solo = len(self.suspects) + sum(len(one.held) for one in self.members if one.alone)
        return max(0, regular - solo)

    def give(self, several: Iterable[Held]) -> None:
        """Have claims run: each where the most slots are free, suspects of a crash alone."""
        rows: dict[Member, list[Held]] = {}
        for held in several:
            if held.claim.crash_count and self._zygote is not None:
                held.deadline = NEVER
                self.suspects.append(held)
                continue
            member = max((one for one in self.members if not one.alone), key=lambda one: one.free)
            member.held[held.key] = held
            rows.setdefault(member, []).append(held)
        for member, given in rows.items():
            self._assign(member, given)
        self.isolate()

    def isolate(self) -> None:
        """Start the next suspects, each in an executor of its own."""
        while self.suspects and sum(one.alone for one in self.members) < max(SOLO_AT_ONCE, self.processes):
            held = self.suspects.popleft()
            self._holdings.begin_anew(held, SYSTEM.monotonic())
            member = self._start(1, alone=True)
            member.held[held.key] = held
            self._assign(member, [held])
            self.retire(member)

    def _assign(self, member: Member, given: list[Held]) -> None:
        member.given += len(given)
        for held in given:
            held.member = member
        member.say(Word.ASSIGN, [wire.assignment_row(held.claim) for held in given])
        self.watch(member)

    # Hearing

    def watch(self, member: Member) -> None:
        """Wait for a member's words, and for room to say what could not be sent."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if member.unsent else 0)
        if self._selector.get_key(member.channel).events != events:
            self._selector.modify(member.channel, events, member)

    def named(self, pid: int) -> None:
        """Note the process id of the executor that was asked for first."""
        member = self._unnamed.popleft()
        member.pid = pid
        if member.doomed:
            self.kill(member)

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
            self._selector.unregister(member.channel)
            member.channel.close()

    def tell_all(self, word: Word, content: object = None) -> None:
        """Say something to everyone."""
        for member in self.members:
            member.say(word, content)
            self.watch(member)

    def tell_all_to_exit(self) -> None:
        """End those that are left; in this process, wait until they have let go of their connections."""
        self.tell_all(Word.EXIT)
        for member in self.members:
            if member.thread is not None:
                member.thread.join(2.0)

    def listener(self) -> Member | None:
        """Find an executor in which somebody listens to signals."""
        return next((one for one in self.members if one.listening and not one.doomed), None)
