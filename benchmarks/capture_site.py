"""The example project for a benchmark: its database, web server and worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from benchmarks.children import ROOT
from benchmarks.databases import Place

WORKERS, THREADS = 2, 4
#: A worker that comes back after so many seconds finds the jobs of the one that was killed free to take.
LEASE = 2.0
_PG = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD"}


def environment_of(place: Place) -> dict[str, str]:
    """Return the environment that points the example project at a place."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXAMPLE_", "JOBQUEUE_WORKER_"))}
    own = {
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_DEBUG": "0",  # else Django keeps each statement, which takes SQLite another one
        "EXAMPLE_NETWORK": f"{place.runtime}/network",
    }
    if place.vendor == "sqlite":
        return kept | own | {"EXAMPLE_SQLITE": place.address}
    given = {name: str(place.database[key]) for key, name in _PG.items() if place.database.get(key)}
    options = {f"PG{key.upper()}": str(value) for key, value in place.database.get("OPTIONS", {}).items()}
    return kept | own | given | options | {"EXAMPLE_POSTGRES": str(place.database["NAME"])}


class Restarted:
    """A process group that can be killed and restarted."""

    def __init__(self, *line: str, environment: dict[str, str], pass_fds: tuple[int, ...] = ()) -> None:
        self._line = [sys.executable, "-m", *line]
        self._environment = environment
        self._pass_fds = pass_fds

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the group."""
        self._end(signal.SIGKILL)

    def start(self) -> None:
        """Start it, or start it again."""
        self._process = subprocess.Popen(
            self._line,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._pass_fds,
        )

    def _end(self, number: int) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)
            self._process.wait()


def migrate(place: Place) -> None:
    """Create the example project's tables."""
    line = [sys.executable, "-m", "django", "migrate", "-v", "0", "--skip-checks"]
    subprocess.run(line, cwd=ROOT, env=environment_of(place), check=True)


def worker_at(place: Place) -> Restarted:
    """Return a worker at full speed, with a short lease, because it will be killed."""
    words = ("runworker", "--skip-checks", "-v", "0", "--lease", str(LEASE))
    return Restarted("django", *words, environment=environment_of(place))


@contextmanager
def server_at(place: Place) -> Iterator[tuple[int, Restarted]]:
    """Run gunicorn on a socket that outlives it, as with systemd. Yield the port and the server."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        words = ["--bind", f"fd://{listening.fileno()}", "--workers", str(WORKERS), "--threads", str(THREADS)]
        words += ["--log-level", "critical"]
        server = Restarted(
            "gunicorn",
            "example_project.wsgi",
            *words,
            environment=environment_of(place),
            pass_fds=(listening.fileno(),),
        )
        with server:
            yield listening.getsockname()[1], server
