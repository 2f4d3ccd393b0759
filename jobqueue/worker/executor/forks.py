"""The children that handlers fork: copies of their executor, which must never go on as one.

A child does what its handler has it do, and ends where it would come back to code of the executor: before a commit or a
rollback over its parent's connection, and before it could say anything in its parent's name.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

#: How many forks lie between the first process and this one: what began under another number is a copy here, which
#: ``end_copy`` ends. To compare costs less than to ask for the process id.
generation = 0

_callbacks: list[WeakMethod[Callable[[], Any]]] = []


def tell(method: Callable[[], Any]) -> None:
    """Have a method called in each child that this process forks, as long as its object is there."""
    _callbacks[:] = [one for one in _callbacks if one() is not None]
    _callbacks.append(WeakMethod(method))


def end_copy(began_under: int, error: BaseException | None = None) -> None:
    """End this process if it is a forked copy of what began under this generation; else do nothing."""
    if began_under != generation:
        end(error)


def end(error: BaseException | None = None) -> None:
    """End a forked child as Python would end a program, but for what its parent has to do at its own end."""
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
