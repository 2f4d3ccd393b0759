"""The lock of a worker: a file in the runtime folder that stays locked while one of the worker's processes lives.

Supervisor, zygote and executors share one open file description. The kernel drops its lock when the last of them has
ended, in whatever way, and not before: a frozen process keeps it. Whoever gets the lock of another worker has
therefore proved that all of its processes are dead. A child that a handler forks keeps the lock too, because it may
still act for its job. Programs that handlers start don't have it.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobqueue import runtime
from jobqueue.clock import SYSTEM

logger = logging.getLogger("jobqueue")

FOLDER = "workers"
#: A worker says that it is up every ten seconds, and then touches its file. Free files that are this old are removed:
#: sweeps have long ended the leases of their workers.
FORGET_AFTER = 2 * 3600.0

#: File systems of one kernel, by the number that statfs() gives. Elsewhere, as with NFS or a virtual machine's shared
#: folder, another kernel may hold a lock that this one doesn't see.
LOCAL = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x794C7630: "overlay",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
}
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LONGEST_OWNER = 1_000
#: A file that isn't locked yet. Nobody judges by it.
_UNREADY = "."


class WorkerLock:
    """The file that this worker keeps locked."""

    def __init__(self, descriptor: int, name: str, identity: str) -> None:
        self.descriptor = descriptor
        self.identity = identity
        self._name = name

    def sign(self, owner: str) -> None:
        """Write the worker's name into the file. Others judge by it from now on."""
        try:
            os.pwrite(self.descriptor, owner.encode(), 0)
            with _folder() as folder:
                os.rename(_UNREADY + self._name, self._name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            _tell(error)

    def touch(self) -> None:
        """Keep the file young, because tidy systems remove old files from temporary folders."""
        with suppress(OSError):
            os.utime(self.descriptor)

    def close(self) -> None:
        """Remove the file at the end of the worker."""
        _remove(self._name)
        _remove(_UNREADY + self._name)  # if it could not be signed
        os.close(self.descriptor)


class FreeLock:
    """The lock of a worker that is dead. This process took the lock, and holds it until it is closed."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self.identity = _identity(descriptor)
        self.owner = os.pread(descriptor, _LONGEST_OWNER, 0).decode(errors="replace")
        self.is_old = _is_old(os.fstat(descriptor))
        self._descriptor = descriptor

    def remove(self) -> None:
        """Remove the file, by which nobody has to judge any more."""
        _remove(self.name)

    def close(self) -> None:
        """Let other workers judge."""
        os.close(self._descriptor)


def locked() -> WorkerLock | None:
    """Create and lock the file of this worker, before its processes are forked.

    Return ``None`` where a lock proves nothing, or where there is no place for one. Then only leases tell of a death.
    """
    try:
        with _folder(make=True) as folder:
            name = secrets.token_hex(16)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(_UNREADY + name, flags, 0o600, dir_fd=folder)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return WorkerLock(descriptor, name, _identity(descriptor))
            except OSError:
                os.close(descriptor)
                _remove(_UNREADY + name)
                raise
    except OSError as error:
        _tell(error)
        return None


def free_locks(known: Container[str]) -> Iterator[FreeLock]:
    """Yield the locks of dead workers, except for the known ones. The caller closes them."""
    try:
        with _folder() as folder:
            yield from _free_in(folder, known)
    except OSError:
        return  # no worker of this user has been here


def _free_in(folder: int, known: Container[str]) -> Iterator[FreeLock]:
    for name in os.listdir(folder):
        if name.startswith(_UNREADY):
            _remove_old(folder, name)
        elif name not in known and (free := _taken(folder, name)):
            yield free


def _taken(folder: int, name: str) -> FreeLock | None:
    """Take the lock of a file.

    Return ``None`` if a living worker holds it, or if the file can't be locked.
    """
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return FreeLock(descriptor, name)
    except OSError:
        os.close(descriptor)
        return None


def _identity(descriptor: int) -> str:
    """Return a name that no other file has while this one is open in any process: boot, device and inode.

    So the copy of a file proves nothing, and neither does one that was created under the same name. Raise OSError where
    locks aren't to be trusted.
    """
    kind, found = _kind(descriptor), os.fstat(descriptor)
    if kind not in LOCAL:
        raise OSError(f"locks on a file system of the kind {kind:#x} are not known to be seen by all processes")
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError("it is no file of this user")
    return f"{_BOOT.read_text(encoding='ascii').strip()}:{found.st_dev:x}:{found.st_ino:x}"


def _kind(descriptor: int) -> int:
    """Return the kind of the file system: the first number of the structure that statfs() fills on Linux."""
    buffer = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None, use_errno=True).fstatfs(descriptor, buffer):
        raise OSError(ctypes.get_errno(), "The kind of the file system is unknown")
    return int(ctypes.c_long.from_buffer(buffer).value) & 0xFFFFFFFF


def _is_old(found: os.stat_result) -> bool:
    return SYSTEM.now().timestamp() - found.st_mtime > FORGET_AFTER


def _remove_old(folder: int, name: str) -> None:
    """Remove the file of a worker that ended before it had a name. Its lock is not touched: it may just be taken."""
    with suppress(OSError):
        if _is_old(os.stat(name, dir_fd=folder, follow_symlinks=False)):
            os.unlink(name, dir_fd=folder)


def _tell(error: OSError) -> None:
    logger.info(
        "The folder %s has no place for the lock of this worker (%s): if all of its processes are killed, its jobs "
        "wait for the end of their leases.",
        runtime.path(FOLDER),
        error.strerror or error,
    )


def _remove(name: str) -> None:
    with suppress(OSError), _folder() as folder:
        os.unlink(name, dir_fd=folder)


@contextmanager
def _folder(*, make: bool = False) -> Iterator[int]:
    descriptor = runtime.opened(FOLDER, make=make)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
