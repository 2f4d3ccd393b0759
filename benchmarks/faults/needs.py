"""The requirements of faults. Each returns why the machine doesn't meet it, or nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

Need = Callable[[], str | None]


def postgres_programs() -> Path | None:
    """Return the folder with the programs of a Postgres server."""
    found = [Path(shutil.which("initdb") or "/").resolve().parent, *Path("/usr/lib/postgresql").glob("*/bin")]
    return next((one for one in found if (one / "initdb").exists() and (one / "pg_ctl").exists()), None)


def own_postgres() -> str | None:
    """Require a Postgres server that may be stopped."""
    if postgres_programs() is None:
        return "neither initdb nor pg_ctl is on this machine"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "Postgres refuses to run as root, and there is no runuser to give that up"
    return None


def processes_in_proc() -> str | None:
    """Require /proc with the parents of processes."""
    return None if Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists() else "there is no /proc/…/children"


def root() -> str | None:
    """Require root."""
    return None if os.geteuid() == 0 else "it takes root"


def strace() -> str | None:
    """Require strace, to manipulate system calls."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)  # noqa: S607
    return f"strace may not trace here: {tried.stderr.strip()}" if tried.returncode else None


_MEMORY = Path("/sys/fs/cgroup/memory")


class MemoryGroup:
    """A control group with a memory limit, for processes started with its prefix."""

    def __init__(self, megabytes: int) -> None:
        self._folder = _MEMORY / f"jobqueue-faults-{os.getpid()}"
        self._bytes = megabytes * 1_048_576

    def __enter__(self) -> MemoryGroup:
        self._folder.mkdir()
        (self._folder / "memory.limit_in_bytes").write_text(str(self._bytes), encoding="ascii")
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # busy while a process is in it
            self._folder.rmdir()

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return the command prefix that starts a process in the group."""
        return ("sh", "-c", f'echo $$ > {self._folder}/cgroup.procs && exec "$@"', "sh")

    @property
    def kills(self) -> int:
        """Return how many processes the kernel has killed for lack of memory."""
        lines = (self._folder / "memory.oom_control").read_text(encoding="ascii").splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])


def memory_group() -> str | None:
    """Require control groups, to limit the memory of a group of processes."""
    try:
        with MemoryGroup(megabytes=100) as group:
            return None if group.kills == 0 else "a new control group has had kills"
    except (OSError, KeyError) as error:
        return f"no control group for memory can be made: {error}"


def compiler() -> str | None:
    """Require a C compiler."""
    return None if shutil.which("gcc") or shutil.which("cc") else "there is no C compiler"


def process_namespaces() -> str | None:
    """Require process namespaces, to make a process the first one in its namespace."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespace may be made here: {tried.stderr.strip()}" if tried.returncode else None
