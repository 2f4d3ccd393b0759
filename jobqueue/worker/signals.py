"""The signals that stop a worker or a relay."""

from __future__ import annotations

import signal
import socket
import threading
from typing import Any


class Signals:
    """Counts signals that ask for a stop, and has a socket that becomes readable when one arrives."""

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
        """Act as if a signal had arrived. Callable from any thread."""
        self.asked += 1
        self._ringer.send(b"!")

    def close(self) -> None:
        """Restore the previous signal handlers."""
        if self._before:
            signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.bell.close()
        self._ringer.close()

    def hear(self) -> None:
        """Empty the socket."""
        try:
            self.bell.recv(64)
        except BlockingIOError:
            return


def _asking() -> list[signal.Signals]:
    """Return the signals that stop a worker. SIGHUP is one of them, unless nohup ignores it."""
    asking = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking
