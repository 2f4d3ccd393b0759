"""The backend of SQLite.

Its class is loaded when it is first asked for, because it needs the models. Other modules of this package are imported
before Django has loaded them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobqueue.backends.sqlite.backend import SqliteBackend as SqliteBackend

__all__ = ["SqliteBackend"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.backend"), name)
