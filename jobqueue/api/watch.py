"""A hook that is called after jobs were stored. It does nothing, except under ``JOBQUEUE["TESTING"]``.

``jobqueue.testing`` uses it to run jobs in the process that enqueues them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from jobqueue import conf
from jobqueue.backends.base import Backend

Watch = Callable[[Backend], None]

#: What the values of ``TESTING`` do with new jobs.
_OF_SETTING = {
    "inline": "jobqueue.testing.inline.AT_COMMIT",
    "immediate": "jobqueue.testing.inline.AT_ENQUEUE",
}
_in_use: list[Watch] = []


def current() -> Watch | None:
    """Return what to call after jobs were stored, in the caller's transaction, or ``None``."""
    return _in_use[-1] if _in_use else _of_setting()


@contextmanager
def used(watch: Watch) -> Iterator[None]:
    """Use a watch in all threads of this process."""
    _in_use.append(watch)
    try:
        yield
    finally:
        _in_use.remove(watch)


@cache
def _of_setting() -> Watch | None:
    path = _OF_SETTING.get(conf.get("TESTING"))
    found: Watch | None = None if path is None else import_string(path)
    return found


def _forget(*, setting: str, **_: object) -> None:
    if setting == "JOBQUEUE":
        _of_setting.cache_clear()


setting_changed.connect(_forget)
