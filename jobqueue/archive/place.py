"""The places that archives can be in: a folder, or one of Django's storages."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.core.files import File
from django.core.files.storage import Storage, storages

from jobqueue.archive import files
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id
from jobqueue.policy.retention import STORAGE

#: Seconds after which nobody writes a file any more that is not complete.
ABANDONED_AFTER = 3_600.0


class Place(ABC):
    """Where an archive is. Its files are named relative to it, and each is written whole or not at all."""

    def write_part(self, day: str, lines: Iterable[bytes]) -> None:
        """Write a new part of a day and status. When this returns, it is stored."""
        self._write(f"{day}{files.PARTS_SUFFIX}/{new_id()}{files.SUFFIX}", lines)

    @abstractmethod
    def days(self) -> list[str]:
        """List the days and statuses, the newest day first."""

    @abstractmethod
    def parts(self, day: str) -> list[str]:
        """List the parts of a day and status, the oldest first."""

    @abstractmethod
    def packed(self, day: str) -> list[str]:
        """List the packed files of a day and status, the oldest first. A pack that was interrupted leaves several."""

    @abstractmethod
    def read(self, name: str) -> Iterator[bytes]:
        """Read the lines of a file. Raise OSError if it is damaged."""

    @abstractmethod
    def pack(self, day: str, lines: Iterable[bytes], merged: Iterable[str]) -> int:
        """Write the packed file of a day and status, delete the files that it replaces, and return its lines."""

    @abstractmethod
    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes from packing, where two at once would overwrite each other's file."""

    @abstractmethod
    def _write(self, name: str, lines: Iterable[bytes]) -> int:
        """Write a file, and return how many lines it has."""


class FolderPlace(Place):
    """A folder. A packed file replaces the one before under the same name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def days(self) -> list[str]:
        return files.days(path.name for path in self._folder.glob("*-*-*-*"))

    def parts(self, day: str) -> list[str]:
        folder = f"{day}{files.PARTS_SUFFIX}"
        return [f"{folder}/{path.name}" for path in sorted((self._folder / folder).glob(f"*{files.SUFFIX}"))]

    def packed(self, day: str) -> list[str]:
        name = f"{day}{files.SUFFIX}"
        return [name] if (self._folder / name).exists() else []

    def read(self, name: str) -> Iterator[bytes]:
        path = self._folder / name
        with path.open("rb") as file:
            yield from files.read(file, path)

    def pack(self, day: str, lines: Iterable[bytes], merged: Iterable[str]) -> int:
        name = f"{day}{files.SUFFIX}"
        count = self._write(name, lines)
        for one in merged:
            if one != name:
                (self._folder / one).unlink()
        parts = self._folder / f"{day}{files.PARTS_SUFFIX}"
        for folder in (parts, self._folder):
            _remove_rests(folder)
        with contextlib.suppress(OSError):  # another part was written meanwhile
            parts.rmdir()
        return count

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with (self._folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OSError(f"another process packs {self._folder}") from error
            yield

    def _write(self, name: str, lines: Iterable[bytes]) -> int:
        """Write under another name, and rename the file when it is on the disk and was read again."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with temporary.open("wb") as raw:
                count = files.write(raw, lines)
                raw.flush()
                os.fsync(raw.fileno())
            with temporary.open("rb") as raw:
                files.check(files.read(raw, temporary), count, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)
        _sync(path.parent.parent)
        return count


class StoragePlace(Place):
    """One of Django's storages. It has no names that can be replaced at once, so each packed file has its own."""

    def __init__(self, alias: str, storage: Storage, prefix: str) -> None:
        self._alias = alias
        self._storage = storage
        self._prefix = f"{prefix}/" if prefix else ""

    def days(self) -> list[str]:
        folders, names = self._list("")
        return files.days([*folders, *names])

    def parts(self, day: str) -> list[str]:
        folder = f"{day}{files.PARTS_SUFFIX}"
        return [f"{folder}/{name}" for name in sorted(self._list(folder)[1]) if name.endswith(files.SUFFIX)]

    def packed(self, day: str) -> list[str]:
        names = self._list("")[1]
        return sorted(name for name in names if name.startswith(f"{day}.") and name.endswith(files.SUFFIX))

    def read(self, name: str) -> Iterator[bytes]:
        with _storage_errors(self._alias), self._storage.open(self._prefix + name, "rb") as file:
            yield from files.read(file, name)

    def pack(self, day: str, lines: Iterable[bytes], merged: Iterable[str]) -> int:
        count = self._write(f"{day}.{new_id()}{files.SUFFIX}", lines)
        with _storage_errors(self._alias):
            for one in merged:
                self._storage.delete(self._prefix + one)
        return count

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let others pack too. Each deletes only what it has merged, so a job may be in two files, but not in none."""
        yield

    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        try:
            with _storage_errors(self._alias):
                return self._storage.listdir(self._prefix + folder)
        except FileNotFoundError:
            return [], []

    def _write(self, name: str, lines: Iterable[bytes]) -> int:
        with tempfile.TemporaryFile() as raw:
            count = files.write(raw, lines)
            raw.seek(0)
            with _storage_errors(self._alias):
                stored = self._storage.save(self._prefix + name, File(raw, name=name))
        if stored != self._prefix + name:
            raise OSError(f"the storage wrote {stored} instead of {self._prefix + name}")
        files.check(self.read(name), count, name)
        return count


def alias_of(archive: str) -> str | None:
    """Return the alias in ``STORAGES`` that a rule names, or ``None`` if it names a folder."""
    return archive.removeprefix(STORAGE).partition("/")[0] if archive.startswith(STORAGE) else None


def place_of(archive: str) -> Place:
    """Return the place that a rule names. Raise OSError if the settings have no such storage."""
    alias = alias_of(archive)
    if alias is None:
        return FolderPlace(Path(archive))
    with _storage_errors(alias):
        return StoragePlace(alias, storages[alias], archive.partition("/")[2].strip("/"))


@contextlib.contextmanager
def _storage_errors(alias: str) -> Iterator[None]:
    """Turn the errors of a storage into OSError. Each library has classes of its own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"the storage {alias!r} failed: {type(error).__name__}: {error}") from error


def _sync(folder: Path) -> None:
    """Have the disk remember the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_rests(folder: Path) -> None:
    """Delete what processes left that were killed while they wrote."""
    for path in folder.glob(".*.*"):
        if SYSTEM.now().timestamp() - path.stat().st_mtime > ABANDONED_AFTER:
            path.unlink(missing_ok=True)
