"""The example project on a database of its own, in real processes: ``manage.py``, gunicorn and ``runworker``."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx

from tests.worker.harness import DEADLINE, until

ROOT = Path(__file__).resolve().parents[2]
_numbers = count(1)


@dataclass
class Site:
    """A database, a folder for everything else, and how to start processes that use them."""

    folder: Path
    environment: dict[str, str]
    connect: object = field(repr=False)
    settings: str = "example_project.settings"

    @property
    def network(self):
        """Where the offline ports keep things."""
        return Path(self.environment["EXAMPLE_NETWORK"])

    def env(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXAMPLE_", "DJANGO_"))}
        return kept | {"DJANGO_SETTINGS_MODULE": self.settings, "PYTHONUNBUFFERED": "1"} | self.environment | more

    def manage(self, *words, status=0, **more):
        """Run a management command, which must end with this exit status, and return what it said."""
        line = [sys.executable, "-m", "django", *words]
        done = subprocess.run(line, cwd=ROOT, env=self.env(**more), capture_output=True, text=True, timeout=100)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def rows(self, statement):
        """Read the database past the code that wrote it."""
        with closing(self.connect()) as connection:
            return [tuple(row) for row in connection.execute(statement).fetchall()]

    def write(self, statement):
        """Write past the code, as another program would."""
        with closing(self.connect()) as connection:
            connection.execute(statement)
            connection.commit()

    def value(self, statement):
        return self.rows(statement)[0][0]

    @contextmanager
    def process(self, *line, pass_fds=(), **more):
        """Run a process in a group of its own; leaving the block ends all of it."""
        log = self.folder / f"{line[0]}-{next(_numbers)}.log"
        with log.open("wb") as output:
            running = subprocess.Popen(
                [sys.executable, "-m", *line],
                cwd=ROOT,
                env=self.env(**more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        running.log = log
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)
            try:
                running.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
            print(f"--- {log.name}\n{log.read_text(errors='replace')}")  # noqa: T201 - shown where a test fails

    @contextmanager
    def serving(self, **more):
        """Run a web server, and yield a client that knows where it is."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            words = ["--bind", f"fd://{listening.fileno()}", "--threads", "4", "--log-level", "debug"]
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with (
                self.process(
                    "gunicorn", "example_project.wsgi", *words, pass_fds=[listening.fileno()], **more
                ) as server,
                httpx.Client(base_url=address, timeout=DEADLINE) as client,
            ):
                client.server = server
                yield client

    @contextmanager
    def working(self, *options, **more):
        """Run a worker."""
        with self.process("django", "runworker", "--skip-checks", *options, **more) as worker:
            yield worker

    def until(self, statement, expected):
        """Wait until the database answers a question so."""
        until(lambda: self.value(statement) == expected, what=lambda: f"{expected!r}, not {self.value(statement)!r}")
