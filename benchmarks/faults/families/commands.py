"""Other commands of a project, and the development reloader: no unwanted worker starts, and no job is lost."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from django.apps import apps

from benchmarks.children import ROOT
from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Worker
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.workers import until

_TOUCHED = "laboratory_touched"
_COMMANDS = ("migrate", "check", "shell -c pass", "showmigrations", "test --noinput benchmarks.faults.project")
#: Threads of a development server: anything else has no business there.
_EXPECTED = ("MainThread", "django-main-thread", "process_request_thread")


@fault("T31a", "runserver, migrate, test and shell with the queue installed")
def other_commands(lab: Laboratory) -> None:
    """Run a project's other commands while jobs wait, and reload its server: none of them starts a worker."""
    environment = _environment(lab)
    waiting = set(lab.enqueue("short", 5))
    while lab.goes_on():
        for command in _COMMANDS:
            _run(lab, command, environment)
            lab.injected(command)
        waiting |= _serve_and_reload(lab, environment, 2 if lab.quick else 20)
        rows = set(_manager("Job").filter(pk__in=waiting).values_list("status", "attempts", "fence"))
        lab.expect(rows == {("queued", 0, 0)}, f"no job is touched, there are {rows}")
        lab.expect(not lab.told(What.START), "no job runs")
        lab.expect(not _manager("Worker").exists(), "no worker has enlisted")
    lab.crew.start(1, lease=lab.lease)


def _run(lab: Laboratory, command: str, environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "django", *command.split()]
    ended = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    lab.expect(ended.returncode == 0, f"{command} ends with 0, not with {ended.returncode}: {ended.stderr[-500:]}")


def _serve_and_reload(lab: Laboratory, environment: dict[str, str], times: int) -> set[str]:
    """Run the server, change its code several times, and return the jobs that its view enqueued."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "django", "runserver", f"127.0.0.1:{port}"]
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    jobs, pids = set(), set[int]()
    with subprocess.Popen(words, cwd=ROOT, env=environment, start_new_session=True, **quiet) as server:
        try:
            for _ in range(times + 1):
                answer = _ask_another(port, pids)
                strangers = [one for one in answer["threads"] if not any(known in one for known in _EXPECTED)]
                lab.expect(not strangers, f"the server has its own threads only, it has {strangers}")
                jobs.add(answer["job"])
                pids.add(answer["pid"])
                _touch(lab)
            lab.injections += len(pids) - 1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
    return jobs


def _ask_another(port: int, known: set[int]) -> dict[str, Any]:
    """Query the next server after the known ones."""
    answers: list[dict[str, Any]] = []

    def has_answered() -> bool:
        with suppress(URLError, ConnectionError, TimeoutError), urlopen(f"http://127.0.0.1:{port}/", timeout=5) as page:
            answers.append(json.load(page))
        return bool(answers) and answers[-1]["pid"] not in known

    until(has_answered, "the server has reloaded, and answers", pause=0.2)
    return answers[-1]


@fault("T31b", "runworker --reload, and files that change")
def worker_reloads(lab: Laboratory) -> None:
    """Change a file while a worker with --reload is under load: it restarts, and no job is lost."""
    environment = _environment(lab)
    words = [sys.executable, "-m", "django", "runworker", "--reload", "-c", "4", "--lease", f"{lab.lease:g}"]
    names = ("DJANGO_SETTINGS_MODULE", "JOBQUEUE_FAULTS_PROJECT", "PYTHONPATH")
    prefix = ("env", *(f"{name}={environment[name]}" for name in names), "sh", "-c", f"exec {shlex.join(words)}", "sh")
    (worker,) = lab.crew.start(1, prefix=prefix)
    lab.load.start(1, rate=20)
    while lab.goes_on():
        former = _supervisor(worker)
        lab.pause(1, 2)
        _touch(lab)
        until(lambda: _supervisor(worker) not in (former, None), "a worker begins anew")  # noqa: B023
        lab.injected("a file touched")

    def look(account: Account) -> None:
        endings = set(_manager("Attempt").values_list("ending", flat=True)) - {"released"}
        lab.expect(not endings, f"runs are at most given back, some are {', '.join(sorted(endings))}")

    lab.afterwards(look)


def _supervisor(worker: Worker) -> int | None:
    """Return the process whose child is the executors' parent."""
    family = worker.family()
    return family[1] if len(family) > 2 else None


def _environment(lab: Laboratory) -> dict[str, str]:
    """Return the project's environment, and its module that will be touched."""
    (lab.folder / f"{_TOUCHED}.py").write_text('"""Is touched."""\n')
    given = {"database": lab.place.database, "runtime": lab.place.runtime, "touched": _TOUCHED}
    return lab.crew.environment | {
        "DJANGO_SETTINGS_MODULE": "benchmarks.faults.project.settings",
        "JOBQUEUE_FAULTS_PROJECT": json.dumps(given),
        "PYTHONPATH": os.pathsep.join([str(lab.folder), str(ROOT)]),
    }


def _touch(lab: Laboratory) -> None:
    """Set the module's modification time to a new value."""
    path = lab.folder / f"{_TOUCHED}.py"
    moment = path.stat().st_mtime + 2
    os.utime(path, (moment, moment))


def _manager(model: str) -> Any:
    return apps.get_model("jobqueue", model)._default_manager
