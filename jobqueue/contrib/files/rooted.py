"""Files below one folder. No path can leave it by dots or symbolic links, even if links change meanwhile.

Each folder on the way is opened relative to the previous one, and never through a link. The folder that was checked is
therefore the folder that is used. Inside an open folder only single names are accepted, because a name with a slash
would be a path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Non-blocking, because opening a FIFO would wait for a writer.
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: The errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


class NotAFile(Exception):
    """The target isn't a regular file, or the way to it leads through a link or a file."""


class Folder:
    """An open folder. Its methods take names of files in it, and no paths."""

    def __init__(self, number: int) -> None:
        self._number = number

    def read(self, name: str, most: int) -> bytes | None:
        """Return at most ``most`` bytes of a file, or ``None`` if there is none. Raises NotAFile."""
        try:
            number = os.open(_single(name), _LOOK, dir_fd=self._number)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _plain(error) from error
        try:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise NotAFile("The path does not lead to a regular file.")
            with os.fdopen(number, "rb", closefd=False) as file:
                return file.read(most)
        finally:
            os.close(number)

    def mode(self, name: str) -> int | None:
        """Return the permissions of a file, or ``None`` if there is none."""
        try:
            return stat.S_IMODE(os.stat(_single(name), dir_fd=self._number, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes, mode: int | None) -> None:
        """Create a file. It is completely on disk when this returns."""
        number = os.open(_single(name), _NEW, 0o666, dir_fd=self._number)
        with os.fdopen(number, "wb") as file:
            if mode is not None:
                os.fchmod(number, mode & 0o777)  # without setuid, which was meant for other content
            file.write(content)
            file.flush()
            os.fsync(number)

    def replace(self, name: str, target: str) -> None:
        """Move a file to another's place in one step."""
        try:
            os.replace(_single(name), _single(target), src_dir_fd=self._number, dst_dir_fd=self._number)
        except (IsADirectoryError, NotADirectoryError) as error:
            raise _plain(error) from error

    def place(self, name: str, target: str) -> bool:
        """Move a file to a free place in one step. Return whether it was free."""
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
        """Remove an unfinished file if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(_single(name), dir_fd=self._number)

    def remove(self, name: str) -> bool:
        """Remove a file. Return whether there was one. Raises NotAFile."""
        try:
            found = os.stat(_single(name), dir_fd=self._number, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise NotAFile("The path does not lead to a regular file.")
            os.unlink(_single(name), dir_fd=self._number)
        except FileNotFoundError:
            return False
        except IsADirectoryError as error:
            raise _plain(error) from error
        return True

    def keep(self) -> None:
        """Flush the folder's entries to disk, including those that a killed attempt changed."""
        os.fsync(self._number)


@contextmanager
def folder_of(root: str | Path, path: str, *, make: bool = False) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a file below ``root``, and yield it with the file's name.

    ``make`` creates missing folders. Raises FileNotFoundError, and NotAFile if the way leads through something that
    isn't a folder, such as a symbolic link.
    """
    *parents, name = path.split("/")
    # The root itself may be a link, because the operator chose it.
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
    """Return a name if it can't lead out of its folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file within a folder.")
    return name


def _plain(error: OSError) -> Exception:
    """Return NotAFile in place of an error that means the same. Return other errors unchanged."""
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return NotAFile("A symbolic link is in the way, and links are not followed.")
    if error.errno == errno.ENOTDIR:
        return NotAFile("A part of the path is not a folder, or is a symbolic link, and links are not followed.")
    if error.errno in (errno.EISDIR, errno.ENXIO):
        return NotAFile("The path does not lead to a regular file.")
    return error
