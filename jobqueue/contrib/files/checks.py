"""System checks of ``FILES_ROOT``: it must be usable, and no web server should serve it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

from jobqueue import conf

_SERVED = ("MEDIA_ROOT", "STATIC_ROOT")
_HINT = "Set JOBQUEUE['FILES_ROOT'] to the absolute path of a folder of its own."


def check_root(**_: Any) -> list[CheckMessage]:
    """Check the root folder of file jobs, unless ``jobqueue.E003`` reports the settings."""
    if not conf.is_sound():
        return []
    root = conf.get("FILES_ROOT")
    if root is None:
        return [Caution("No file job can run: FILES_ROOT is not set.", hint=_HINT, id="jobqueue_files.W001")]
    return [*_unusable(Path(root)), *_served(Path(root))]


def _unusable(root: Path) -> Iterator[CheckMessage]:
    if not root.is_dir():
        yield Caution(
            f"FILES_ROOT is {str(root)!r}, which does not exist: file jobs fail until it does.",
            hint="Create or mount the folder on every machine that has a worker.",
            id="jobqueue_files.W002",
        )
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        yield Error(
            "This system cannot open a file relative to an open folder, so file jobs could be led out of FILES_ROOT.",
            hint="Run the workers of file jobs on Linux, macOS or a BSD.",
            id="jobqueue_files.E001",
        )


def _served(root: Path) -> Iterator[CheckMessage]:
    for name in _SERVED:
        given = getattr(settings, name, None)
        if given and _overlap(root.resolve(), Path(given).resolve()):
            yield Caution(
                f"FILES_ROOT and {name} overlap: files that jobs write there may be served to anyone.",
                hint=f"{_HINT} Silence jobqueue_files.W003 if it is meant to be public.",
                id="jobqueue_files.W003",
            )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
