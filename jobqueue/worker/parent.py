"""The parent process of this worker. If the parent ends for any reason, standard input closes."""

from __future__ import annotations

import os
import selectors

from jobqueue.worker.signals import Signals

_STDIN = 0


class Parent:
    """Stops the worker as a signal would when its parent has ended or closed the pipe."""

    def __init__(self, signals: Signals, selector: selectors.BaseSelector) -> None:
        self._signals = signals
        self._selector = selector
        try:
            selector.register(_STDIN, selectors.EVENT_READ, self)
        except PermissionError:
            signals.ask()  # a file or nothing: there is no parent at the other end

    def hear(self) -> None:
        """Read the input, whose content doesn't matter, to notice its end."""
        if not os.read(_STDIN, 1024):
            self._selector.unregister(_STDIN)
            if not self._signals.asked:  # after a signal to both processes this isn't a second one
                self._signals.ask()
