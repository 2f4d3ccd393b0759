"""The program that started this worker as its child: standard input ends when it does, however that comes about."""

from __future__ import annotations

import os
import selectors

from jobqueue.worker.signals import Signals

_STDIN = 0


class Parent:
    """Has a worker stop as if a signal had come, once its parent is gone or has closed the pipe."""

    def __init__(self, signals: Signals, selector: selectors.BaseSelector) -> None:
        self._signals = signals
        self._selector = selector
        try:
            selector.register(_STDIN, selectors.EVENT_READ, self)
        except PermissionError:
            signals.ask()  # a file, or nothing at all: there is no parent at its other end

    def hear(self) -> None:
        """Take note of what came; what is said does not matter, only that nothing more will be."""
        if not os.read(_STDIN, 1024):
            self._selector.unregister(_STDIN)
            if not self._signals.asked:  # else both were told at once, and this is no second word
                self._signals.ask()
