"""What a fault needs of the machine: each need says why it is not met, or nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

Need = Callable[[], str | None]


def postgres_programs() -> Path | None:
    """Find the folder that has the programs of a Postgres server."""
    found = [Path(shutil.which("initdb") or "/").resolve().parent, *Path("/usr/lib/postgresql").glob("*/bin")]
    return next((one for one in found if (one / "initdb").exists() and (one / "pg_ctl").exists()), None)


def own_postgres() -> str | None:
    """Need a Postgres server that may be stopped at will."""
    if postgres_programs() is None:
        return "neither initdb nor pg_ctl is on this machine"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "Postgres refuses to run as root, and there is no runuser to give that up"
    return None


def processes_in_proc() -> str | None:
    """Need to see the families of processes."""
    return None if Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists() else "there is no /proc/…/children"


def root() -> str | None:
    """Need to be root."""
    return None if os.geteuid() == 0 else "it takes root"


def strace() -> str | None:
    """Need to tamper with system calls."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)  # noqa: S607
    return f"strace may not trace here: {tried.stderr.strip()}" if tried.returncode else None


_MEMORY = Path("/sys/fs/cgroup/memory")


class MemoryGroup:
    """A control group with a limit of memory, for the processes that are started with its prefix."""

    def __init__(self, megabytes: int) -> None:
        self._folder = _MEMORY / f"jobqueue-faults-{os.getpid()}"
        self._bytes = megabytes * 1_048_576

    def __enter__(self) -> MemoryGroup:
        self._folder.mkdir()
        (self._folder / "memory.limit_in_bytes").write_text(str(self._bytes), encoding="ascii")
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # busy as long as a process is in it
            self._folder.rmdir()

    @property
    def prefix(self) -> tuple[str, ...]:
        """What to start a command with to have it in the group."""
        return ("sh", "-c", f'echo $$ > {self._folder}/cgroup.procs && exec "$@"', "sh")

    @property
    def kills(self) -> int:
        """How many processes the kernel has ended for want of memory."""
        lines = (self._folder / "memory.oom_control").read_text(encoding="ascii").splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])


def memory_group() -> str | None:
    """Need to limit the memory of a group of processes."""
    try:
        with MemoryGroup(megabytes=100) as group:
            return None if group.kills == 0 else "a new control group has had kills"
    except (OSError, KeyError) as error:
        return f"no control group for memory can be made: {error}"


def compiler() -> str | None:
    """Need to compile C."""
    return None if shutil.which("gcc") or shutil.which("cc") else "there is no C compiler"


def process_namespaces() -> str | None:
    """Need to be able to make a process the first one of a namespace."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespace may be made here: {tried.stderr.strip()}" if tried.returncode else None
