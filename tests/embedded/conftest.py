"""Fixtures of the embedded worker's tests: web processes."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from jobqueue.models import Worker
from tests.worker.conftest import jobs as jobs  # fixtures
from tests.worker.conftest import ledger as ledger
from tests.worker.harness import WorkerProcess, until


class Site(WorkerProcess):
    """A web server, and what it starts."""

    def __init__(self, alias, ledger, log, *options, port, **given):
        self.port = port
        super().__init__(alias, ledger, log, *options, settings="tests.embedded.settings", **given)

    def enqueue(self):
        """Have it enqueue a job, as soon as it answers; return the job's id and the process that served."""

        def answer():
            assert self.process.poll() is None, self.output
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/enqueue", timeout=30) as found:
                    return found.read().decode().split()
            except (urllib.error.URLError, ConnectionError):
                return None

        job, pid = until(answer, what="an answer")
        return job, int(pid)


@pytest.fixture
def alias(databases):
    """What is embedded does not depend on the database."""
    return "default"


@pytest.fixture
def serve(queue, ledger, tmp_path):
    """A function that starts a server; what it leaves is killed after the test."""
    started = []

    def start(*program, options=(), **environment):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        site = Site(
            "default",
            ledger.folder,
            tmp_path / f"site-{len(started)}.log",
            *(one.format(port=port) for one in options),
            port=port,
            program=program,
            jobqueue={"EMBEDDED": True},
            environment=environment,
        )
        started.append(site)
        return site

    yield start
    for site in started:
        site.destroy()
        print(f"--- {site.log.name}\n{site.output}")  # noqa: T201 - shown where a test fails


@pytest.fixture
def workers(queue):
    """A function that lists the process ids of the workers that are up."""
    yield lambda: sorted(Worker.objects.values_list("pid", flat=True))
    Worker.objects.all().delete()
