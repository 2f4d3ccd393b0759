"""The zygote: the process that forks executors. It is forked from the supervisor before threads and connections exist.

It is the executors' parent: it alone reaps and kills them, so that a process id never means another process. It is also
their guard: if the supervisor is stuck or dead, executors end before the leases of their jobs do.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from jobqueue.clock import SYSTEM
from jobqueue.worker.executor.executor import Executor
from jobqueue.worker.memory import give_back
from jobqueue.worker.options import Plan

#: Seconds in which executors may end by themselves once their supervisor is dead.
ORPHANED_FOR = 0.5

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
#: On the kernel's scale: half of all memory, and the maximum.
_OOM_SCORE = 500
_MOST_OOM_SCORE = 1_000


class Zygote:
    """The supervisor's end of the channel to the zygote."""

    #: The process of a bare zygote. Kept, because Popen warns if it is collected while the process runs.
    interpreter: subprocess.Popen[bytes]

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self.channel = channel
        self.pid = pid
        self._lines = b""

    @classmethod
    def start(cls, plan: Plan) -> Zygote:
        """Fork the zygote. Must be called before a thread is started or a connection opened."""
        ours, theirs = socket.socketpair()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # otherwise every child would write the buffered text
        gc.collect()
        give_back()  # otherwise each process writes to these pages and gets copies of its own
        gc.freeze()  # the children's collectors leave old objects alone, so their memory stays shared
        pid = os.fork()
        if pid == 0:
            ours.close()
            _run_and_exit(lambda: ZygoteProcess(theirs, plan).serve())
        theirs.close()
        ours.setblocking(False)
        return cls(ours, pid)

    @classmethod
    def start_bare(cls, plan: Plan, lock: int | None) -> Zygote:
        """Start the zygote in a new interpreter, if this one has threads and must not be forked.

        Each executor then sets up Django itself: it starts more slowly and shares no memory. The descriptor of the
        worker's lock is passed on, as a fork does it.
        """
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        passed = [theirs.fileno(), *([] if lock is None else [lock])]
        arguments = [*map(str, plan), *map(str, passed)]
        cls.interpreter = subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-m", "jobqueue.worker.zygote.bare", *arguments],
            pass_fds=passed,
            env=environment,
        )
        theirs.close()
        ours.setblocking(False)
        return cls(ours, cls.interpreter.pid)

    def fork(self, channel: socket.socket) -> None:
        """Request an executor at the other end of a channel. The answers, ``("forked", pid)``, keep the order."""
        descriptor = array.array("i", [channel.fileno()])
        with self._speaking():
            self.channel.sendmsg([b'["fork"]\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])

    def kill(self, pid: int) -> None:
        """Request the end of an executor. ``("died", pid, status, silenced)`` follows."""
        self._say(["kill", pid])

    def trust_until(self, moment: float | None) -> None:
        """Request the end of all executors at a monotonic moment, unless another message comes first."""
        self._say(["trust", moment])

    def _say(self, words: list[Any]) -> None:
        with self._speaking():
            self.channel.send(json.dumps(words).encode() + b"\n")

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[None]:
        """Send to a zygote. If the zygote is dead, hear() reports that. If it is stuck, kill it."""
        try:
            yield
        except BlockingIOError:
            os.kill(self.pid, signal.SIGKILL)
        except ConnectionError:
            return

    def hear(self) -> Iterator[list[Any]]:
        """Yield the zygote's messages. Raise ConnectionError if the zygote is dead."""
        try:
            data = self.channel.recv(1 << 16)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("the zygote is dead")
        *lines, self._lines = (self._lines + data).split(b"\n")
        yield from map(json.loads, lines)


class ZygoteProcess:
    """The zygote's process: it forks, reaps, kills and guards executors."""

    def __init__(self, channel: socket.socket, plan: Plan, prepare: Callable[[], None] | None = None) -> None:
        self._channel = channel
        self._plan = plan
        self._prepare = prepare
        self._children: set[int] = set()
        #: Executors that were killed because the supervisor was silent, not because of a fault.
        self._silenced: set[int] = set()
        self._trust: float | None = None
        self._bell, self._rung = socket.socketpair()
        self._lines = b""
        self._descriptors: list[int] = []

    def serve(self) -> None:
        """Follow the supervisor's requests until it is gone."""
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for end in (self._bell, self._rung):
            end.setblocking(False)
        signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while self._turn():
            pass
        self._kill_all()

    def _turn(self) -> bool:
        wait = None if self._trust is None else max(0.0, self._trust - SYSTEM.monotonic())
        ready = select.select([self._channel, self._rung], [], [], wait)[0]
        if self._rung in ready:
            self._rung.recv(1024)
        self._reap()
        if self._channel in ready and not self._hear():
            self._wait_for_orphans()
            return False
        if self._trust is not None and SYSTEM.monotonic() >= self._trust:
            self._trust = None
            self._silenced |= self._children
            self._kill_all()
        return True

    def _hear(self) -> bool:
        try:
            data, descriptors, _flags, _address = socket.recv_fds(self._channel, 1 << 16, 64)
        except ConnectionResetError:
            return False
        self._descriptors += descriptors
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            self._obey(*json.loads(line))
        return bool(data)

    def _obey(self, word: str, *said: Any) -> None:
        if word == "fork":
            self._fork(self._descriptors.pop(0))
        elif word == "kill" and said[0] in self._children:
            os.kill(said[0], signal.SIGKILL)
        elif word == "trust":
            self._trust = said[0]

    def _fork(self, descriptor: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:  # no more processes, or no more memory
            os.close(descriptor)
            self._tell(["unforked", str(error)])
            return
        if pid == 0:
            self._channel.close()
            self._bell.close()
            self._rung.close()
            for others in self._descriptors:
                os.close(others)
            os.set_inheritable(descriptor, False)  # programs that a handler starts must not keep it open
            _run_and_exit(lambda: self._execute(socket.socket(fileno=descriptor)))
        os.close(descriptor)
        self._children.add(pid)
        self._tell(["forked", pid])

    def _execute(self, channel: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in _IGNORED:
            signal.signal(number, _ignore)  # unlike SIG_IGN, not inherited by the programs that handlers start
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            _prefer_as_oom_victim()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # so that a handler's output survives its crash
        if self._prepare:
            self._prepare()
        Executor(channel, self._plan, may_exit=True).serve()

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._children:
                self._children.discard(pid)
                self._tell(["died", pid, os.waitstatus_to_exitcode(status), pid in self._silenced])
                self._silenced.discard(pid)

    def _tell(self, words: list[Any]) -> None:
        try:
            self._channel.sendall(json.dumps(words).encode() + b"\n")
        except OSError:
            return  # the supervisor is dead; the next turn sees it

    def _wait_for_orphans(self) -> None:
        end = SYSTEM.monotonic() + ORPHANED_FOR
        end = end if self._trust is None else min(end, self._trust)
        while self._children and (left := end - SYSTEM.monotonic()) > 0:
            if select.select([self._rung], [], [], left)[0]:
                self._rung.recv(1024)
            self._reap()

    def _kill_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)


def _ignore(_number: int, _frame: object) -> None:
    """Leave the signal to the supervisor."""


def _prefer_as_oom_victim() -> None:
    """Make the kernel end executors and their programs before other processes when memory runs out.

    The jobs of a dead executor are settled at once, but those of a dead supervisor only when their leases expire.
    """
    with contextlib.suppress(OSError, ValueError):
        file = Path("/proc/self/oom_score_adj")
        file.write_text(str(min(_MOST_OOM_SCORE, int(file.read_text()) + _OOM_SCORE)), encoding="ascii")


def _run_and_exit(work: Callable[[], None]) -> NoReturn:
    """Do a forked process's work and end it, without the exit handlers of its parent's interpreter."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # it may be on a full disk
                stream.flush()
        os._exit(status)
