"""Children that handlers fork: copies of the executor that must not continue as executors.

A child does what its handler tells it to, and ends where it would return to the executor's code: before a commit or
rollback on its parent's connection, and before it could send anything in its parent's name.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

#: The number of forks between the first process and this one. Code that began under another number runs in a copy,
#: which ``end_copy`` ends. The comparison costs less than asking for the process id.
generation = 0

_callbacks: list[WeakMethod[Callable[[], Any]]] = []


def tell(method: Callable[[], Any]) -> None:
    """Register a method that each forked child of this process calls. Its object may be deleted before."""
    _callbacks[:] = [one for one in _callbacks if one() is not None]
    _callbacks.append(WeakMethod(method))


def end_copy(began_under: int, error: BaseException | None = None) -> None:
    """End this process if it is a forked copy of code that began in the given generation."""
    if began_under != generation:
        end(error)


def end(error: BaseException | None = None) -> None:
    """End a forked child like a Python program, but without its parent's exit handlers."""
    status = 0
    try:
        status = _status(error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


def _status(error: BaseException | None) -> int:
    if error is None:
        return 0
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        return (error.code or 0) & 0xFF
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def _begin_child() -> None:
    global generation
    generation += 1
    for callback in _callbacks:
        method = callback()
        if method is not None:
            method()
    _callbacks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
