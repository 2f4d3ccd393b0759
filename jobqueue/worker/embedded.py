"""The embedded worker: a child of a web process, one for each database on a machine.

The worker is a process of its own, because a thread would share the interpreter with requests, could not end a handler,
and would vanish silently with some servers. Its standard input is a pipe to the web process. When that process ends in
any way, the pipe closes, and the worker stops as at SIGTERM.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from django.conf import ENVIRONMENT_VARIABLE
from django.core import mail
from django.db import DatabaseError, connections

from jobqueue import backends, conf, runtime, signals
from jobqueue.clock import SYSTEM
from jobqueue.errors import JobQueueError

logger = logging.getLogger("jobqueue")

#: How often to look for jobs of other processes until a worker is needed.
LOOK_EVERY = 15.0
#: Seconds in which running jobs may end; less than web servers grant their own processes.
GRACE = "10"
#: How often to check whether another web process's worker is gone.
_TURN_EVERY = 0.5
#: How long an ending web process waits for its worker, which normally ends sooner.
_LONGEST_END = 20.0
#: The longest pause before a worker that ended is started again; pauses grow up to it.
_LONGEST_PAUSE = 30.0
#: The time that a freshly forked server process needs, for example to change its user.
_SETTLING = 1.0
_MANAGED = ("manage.py", "django-admin", "django-admin.py")


class Keeper:
    """Starts the worker when there is something to do, and restarts it if it dies.

    If another process on this machine has a worker, it waits until that worker is gone. Its thread mostly waits, and
    never runs a job.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = delay
        self._wanted, self._stopped = threading.Event(), threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._thread = threading.Thread(target=self._keep, name="jobqueue-embedded", daemon=True)

    def start(self) -> None:
        """Start the thread. At the end of the process, the worker is stopped and waited for."""
        signals.enqueued.connect(self._enqueued, dispatch_uid="jobqueue-embedded")
        os.register_at_fork(after_in_child=self._forget_in_child)
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Stop the worker; jobs that don't end in time go back to the queue. The autoreloader doesn't wait for it."""
        self._stopped.set()
        self._wanted.set()
        if self._child is not None:
            self._hang_up()
            if "RUN_MAIN" not in os.environ:
                self._thread.join(_LONGEST_END)

    def _enqueued(self, **_: object) -> None:
        self._wanted.set()

    def _keep(self) -> None:
        if self._stopped.wait(self._delay):
            return
        while not self._wanted.is_set() and not _has_jobs():
            self._wanted.wait(LOOK_EVERY)
        signals.enqueued.disconnect(dispatch_uid="jobqueue-embedded")
        self._await_turn()
        pause = 0.5
        while not self._stopped.is_set():
            began = SYSTEM.monotonic()
            try:
                end = f"ended with status {self._run_worker()}"
            except OSError as error:  # the system has no resources for a process; it may have some later
                end = f"could not be started ({error})"
            if self._stopped.is_set():
                return
            pause = 1.0 if SYSTEM.monotonic() - began > _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
            logger.warning("The embedded worker %s; another one follows in %g s", end, pause)
            self._stopped.wait(pause)

    def _await_turn(self) -> None:
        """Wait until no other worker is embedded on this machine for this database.

        It polls: with green threads, waiting for a lock would block all requests.
        """
        self._lock = _lock_opened()
        while self._lock is not None and _is_taken(self._lock) and not self._stopped.wait(_TURN_EVERY):
            pass

    def _run_worker(self) -> int:
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment = {"JOBQUEUE_WORKER_SHUTDOWN_GRACE": GRACE} | os.environ | paths
        environment.pop("RUN_MAIN", None)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "django", "jobqueue", "worker", "--stop-at-eof"],
            stdin=subprocess.PIPE,
            pass_fds=[] if self._lock is None else [self._lock],
            env=environment,
        )
        if self._stopped.is_set():
            self._hang_up()  # stop() was called while it was started
        return self._child.wait()

    def _hang_up(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()

    def _forget_in_child(self) -> None:
        """Leave worker and lock to the parent process: both must end with it."""
        if threading.get_ident() == self._thread.ident:
            return  # this fork becomes the worker, if Python code starts it, as gevent does
        atexit.unregister(self.stop)
        self._hang_up()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Role:
    """The embedded worker's state in this process. Forked processes have a state of their own."""

    keeper: Keeper | None = None
    is_waiting_for_fork = False


def begin() -> None:
    """Keep a worker if ``EMBEDDED`` is on and this process serves requests. Called once the application is loaded.

    A process that loads the application for those it will fork keeps no worker; the forked processes do.
    """
    conf.refuse_unknown_keys()  # a misspelt EMBEDED would silently start nothing
    if not conf.get("EMBEDDED") or conf.get("TESTING") or not _is_served_here() or _Role.keeper is not None:
        return
    conf.get("RUNTIME_DIR")  # raises here, where the error is seen, instead of in the keeper's thread
    if not _is_preloading():
        _start_keeper()
    elif not _Role.is_waiting_for_fork:
        _Role.is_waiting_for_fork = True
        os.register_at_fork(after_in_child=_begin_in_child)


def _begin_in_child() -> None:
    if _Role.is_waiting_for_fork:
        _Role.is_waiting_for_fork = False
        _start_keeper(_SETTLING)


def _start_keeper(delay: float = 0.0) -> None:
    _Role.keeper = Keeper(delay)
    _Role.keeper.start()


def _is_served_here() -> bool:
    """Return whether this is a web process rather than a test run, a shell or a command with a test client."""
    if hasattr(mail, "outbox"):  # exists in test environments only
        return False
    program = Path(sys.argv[0] if sys.argv else "")
    is_managed = program.name in _MANAGED or (program.parent.name, program.name) == ("django", "__main__.py")
    return not is_managed or any(one.startswith("runserver") for one in sys.argv[1:2])


def _is_preloading() -> bool:
    """Return whether gunicorn loads the application before it forks its workers."""
    return any(
        frame.f_globals.get("__name__") == "gunicorn.arbiter" and frame.f_code.co_name == "setup"
        for frame in _callers()
    )


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _has_jobs() -> bool:
    """Return whether jobs wait, or are claimed by a worker that may be dead."""
    try:
        return any(one.queued or one.in_progress for one in backends.current().metrics.depths(1, 1))
    except (DatabaseError, JobQueueError) as error:
        logger.debug("The embedded worker cannot look for jobs: %s", error)
        return False
    finally:
        connections.close_all()


def _lock_opened() -> int | None:
    """Open the file that is locked while a worker runs. Without it several workers may run, which does no harm."""
    name = _lock_name()
    try:
        folder = runtime.opened(make=True)  # private: otherwise other users could hold the lock for ever
        try:
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        path = runtime.path(name)
        logger.warning("Each web process starts a worker of its own, because %s cannot be locked: %s", path, error)
        return None


def _is_taken(descriptor: int) -> bool:
    """Try to lock the file. Return whether another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks is treated like a missing file
    return False


def _lock_name() -> str:
    database = connections.settings[conf.get("DATABASE")]
    parts = [
        os.environ[ENVIRONMENT_VARIABLE],
        *(str(database.get(name)) for name in ("ENGINE", "NAME", "HOST", "PORT")),
    ]
    digest = hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
    return f"embedded-{digest}.lock"
