"""The private runtime folder for sockets and locks.

It may be in a place where other users can write, such as ``/tmp``. Owner and mode are therefore read from an open
descriptor, and files are accessed relative to it: they stay in that folder even if its path changes a moment later.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from jobqueue import conf

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def path(*names: str) -> str:
    """Return the path of the runtime folder, or of something in it, for people to read."""
    base = conf.get("RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return "/".join((os.fspath(base), f"jobqueue-{os.geteuid()}", *names))


def opened(*names: str, make: bool = False) -> int:
    """Open the runtime folder, or a folder in it, and return the descriptor. The caller closes it.

    ``make`` creates missing folders. Raises OSError if the folder doesn't exist, is a symbolic link, or isn't private
    to this user.
    """
    # Only the part before the folder's own name may contain links: it comes from the settings or the environment.
    here = _private(path(), None, make)
    for name in names:
        try:
            there = _private(name, here, make)
        finally:
            os.close(here)
        here = there
    return here


def _private(name: str, parent: int | None, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
    number = os.open(name, _FOLDER, dir_fd=parent)
    found = os.fstat(number)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        os.close(number)
        raise PermissionError(errno.EPERM, "The folder is not private to this user", name)
    return number


def path_of(folder: int, *names: str) -> str:
    """Return a path to ``names`` in an open folder, for APIs that take no descriptor, such as sockets.

    On Linux the path goes through the descriptor and is short. Elsewhere it is the folder's own path; OSError is raised
    if another user could replace a part of it.
    """
    if _has_paths_of_descriptors():
        return f"/proc/self/fd/{folder}"
    own = Path(path())
    own = own.parent.resolve() / own.name
    _check_way(own)
    return os.fspath(own.joinpath(*names))


@lru_cache(maxsize=1)
def _has_paths_of_descriptors() -> bool:
    return Path("/proc/self/fd").is_dir()


def _check_way(folder: Path) -> None:
    for parent in folder.parents:
        found = parent.lstat()
        is_open = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in (0, os.geteuid()) or is_open:
            raise PermissionError(errno.EPERM, "Another user can replace what is in the folder", os.fspath(parent))
