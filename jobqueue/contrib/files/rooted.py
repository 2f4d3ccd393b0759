"""Files below one folder, which no path leads out of: not by dots, nor by symbolic links, however these are swapped.

Each folder on the way is opened relative to the one before it, and never through a link. So what was checked and what
is used are the same folder: there is no path left that could mean something else a moment later. In an open folder only
single names are taken; a name with a slash in it would be a path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Without waiting: a FIFO would let its reader wait for a writer.
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: File systems that have no hard links say so in different words.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


class NotAFile(Exception):
    """What is there is no regular file, or the way there leads through a link or a file."""


class Folder:
    """An open folder, in which a job works with single names."""

    def __init__(self, number: int) -> None:
        self._number = number

    def read(self, name: str, most: int) -> bytes | None:
        """Read a file, at most so many bytes; nothing if there is none. Raises NotAFile."""
        try:
            number = os.open(_single(name), _LOOK, dir_fd=self._number)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _plain(error) from error
        try:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise NotAFile("What is there is no regular file.")
            with os.fdopen(number, "rb", closefd=False) as file:
                return file.read(most)
        finally:
            os.close(number)

    def mode(self, name: str) -> int | None:
        """Read the permissions of a file, if it is there."""
        try:
            return stat.S_IMODE(os.stat(_single(name), dir_fd=self._number, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes, mode: int | None) -> None:
        """Make a new file, whole on the disk when this returns."""
        number = os.open(_single(name), _NEW, 0o666, dir_fd=self._number)
        with os.fdopen(number, "wb") as file:
            if mode is not None:
                os.fchmod(number, mode & 0o777)  # setuid was for other content
            file.write(content)
            file.flush()
            os.fsync(number)

    def replace(self, name: str, target: str) -> None:
        """Put a file in another's place, in one step."""
        try:
            os.replace(_single(name), _single(target), src_dir_fd=self._number, dst_dir_fd=self._number)
        except (IsADirectoryError, NotADirectoryError) as error:
            raise _plain(error) from error

    def place(self, name: str, target: str) -> bool:
        """Put a file where none is, in one step; say whether none was."""
        try:
            here = self._number
            os.link(_single(name), _single(target), src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self.replace(name, target)
            return True
        self.drop(name)
        return True

    def drop(self, name: str) -> None:
        """Remove a file of our own making, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(_single(name), dir_fd=self._number)

    def remove(self, name: str) -> bool:
        """Remove a file; say whether there was one. Raises NotAFile."""
        try:
            found = os.stat(_single(name), dir_fd=self._number, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise NotAFile("What is there is no regular file.")
            os.unlink(_single(name), dir_fd=self._number)
        except FileNotFoundError:
            return False
        except IsADirectoryError as error:
            raise _plain(error) from error
        return True

    def keep(self) -> None:
        """Force to the disk which names there are: what an earlier attempt changed, too, and died before it could."""
        os.fsync(self._number)


@contextmanager
def folder_of(root: str | Path, path: str, *, make: bool = False) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a file below ``root``, and tell the file's name in it.

    ``make`` makes the folders that are missing. Raises FileNotFoundError, and NotAFile for a way that leads through
    what is no folder, a symbolic link above all.
    """
    *parents, name = path.split("/")
    # The root itself may be a link, for the operator has named it.
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for parent in parents:
            there = _enter(here, parent, make)
            os.close(here)
            here = there
        yield Folder(here), name
    finally:
        os.close(here)


def _enter(here: int, name: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(_single(name), dir_fd=here)
        os.fsync(here)
    try:
        return os.open(_single(name), _FOLDER, dir_fd=here)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _plain(error) from error


def _single(name: str) -> str:
    """Let a name pass that cannot lead out of the folder it is used in."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a file within a folder.")
    return name


def _plain(error: OSError) -> Exception:
    """Say what stands in the way in words of our own; an error of the system stays what it is, and may pass."""
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return NotAFile("A symbolic link is in the way, and links are not followed.")
    if error.errno == errno.ENOTDIR:
        return NotAFile("A part of the path is no folder, or a symbolic link, and links are not followed.")
    if error.errno in (errno.EISDIR, errno.ENXIO):
        return NotAFile("What is there is no regular file.")
    return error
