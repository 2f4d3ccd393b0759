"""The signals that ask a worker, or a relay, to stop."""

from __future__ import annotations

import signal
import socket
import threading
from typing import Any


class Signals:
    """Counts SIGTERM and SIGINT, and is readable when one has come."""

    def __init__(self) -> None:
        self.bell, self._ringer = socket.socketpair()
        self.bell.setblocking(False)
        self._ringer.setblocking(False)
        self.asked = 0
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
            self._before = {number: signal.signal(number, self._count) for number in _asking()}

    def _count(self, _number: int, _frame: object) -> None:
        self.asked += 1

    def ask(self) -> None:
        """Do as if a signal had come; callable from any thread."""
        self.asked += 1
        self._ringer.send(b"!")

    def close(self) -> None:
        """Leave the signals to whoever had them before."""
        if self._before:
            signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.bell.close()
        self._ringer.close()

    def hear(self) -> None:
        """Take note of what rang."""
        try:
            self.bell.recv(64)
        except BlockingIOError:
            return


def _asking() -> list[signal.Signals]:
    """List what asks a worker to stop: a terminal that closes too, unless somebody said nohup."""
    asking = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking
