"""The runtime folder, which is private to this user: sockets and locks are made, used and removed in it.

It may stand where other users can write, as in ``/tmp``. So whoever opens it gets a descriptor of a folder whose owner
and mode were read from that descriptor. What is done relative to it stays in that folder, whatever its path means a
moment later.
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
    """Name the runtime folder, or what is in it, for people to read."""
    base = conf.get("RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return "/".join((os.fspath(base), f"jobqueue-{os.geteuid()}", *names))


def opened(*names: str, make: bool = False) -> int:
    """Open the runtime folder, or a folder in it, and return the descriptor, which the caller closes.

    ``make`` makes the folders that are missing. Raises OSError: no such folder is there, a symbolic link is in its
    place, or it is not private to this user.
    """
    # Only what is in front of the folder's own name may be a link: it comes from the settings or the environment.
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
    """Return a path of an open folder, which ``names`` lead to, for what takes no descriptor, such as a socket.

    On Linux the path goes through the descriptor, and is short. Elsewhere it is the folder's own, and OSError is raised
    where another user could put something else in its way.
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
