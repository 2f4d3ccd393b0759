"""A Postgres server of the laboratory, which may be stopped, crashed, made read-only and starved."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.databases import NoPostgres, Place
from benchmarks.faults.needs import own_postgres, postgres_programs

_PATIENCE = 120


class Cluster:
    """A data folder and its server. It has no port, and its socket is in a private folder."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-U", "jobqueue", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")

    @property
    def address(self) -> str:
        """Return the connection string of its database."""
        return f"host={self.folder} port=5432 user=jobqueue dbname=postgres"

    def place(self) -> Place:
        """Return its database as a place for the queue."""
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": str(self.folder),
            "PORT": "5432",
            "USER": "jobqueue",
            "NAME": "postgres",
        }
        return Place(vendor="postgres", database=database, address=self.address, runtime=str(self.folder))

    def start(self, **settings: str) -> None:
        """Start the server, with other settings if given, and return when it answers."""
        given = {"listen_addresses": "", "port": "5432", "max_connections": "100", **settings}
        options = " ".join(f"-c {name}='{value}'" for name, value in given.items())
        self._run("pg_ctl", "-l", str(self.folder / "log"), "-w", "-s", "-o", f"-k '{self.folder}' {options}", "start")

    def stop(self, manner: str = "immediate") -> None:
        """Stop the server. ``immediate`` is a crash, after which the next start recovers."""
        self._run("pg_ctl", "-m", manner, "-w", "-s", "stop")

    def reload(self) -> None:
        """Let the server reload its settings."""
        self._run("pg_ctl", "-s", "reload")

    @property
    def log(self) -> str:
        """Return the server's log."""
        return (self.folder / "log").read_text(errors="replace")

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [*self._as, str(self._programs / program), "-D", str(self.folder / "data"), *words],
            cwd=self.folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )


@contextmanager
def own_cluster(**settings: str) -> Iterator[Cluster]:
    """Create and start a cluster, and remove it. Raise NoPostgres if the programs are missing."""
    programs, why = postgres_programs(), own_postgres()
    if programs is None or why:
        raise NoPostgres(str(why))
    folder = Path(tempfile.mkdtemp(prefix="jobqueue-pg-", dir="/tmp"))  # a socket's path must be short
    try:
        cluster = Cluster(folder, programs)
        cluster.start(**settings)
        yield cluster
    finally:
        with suppress(subprocess.SubprocessError, UnboundLocalError):
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
