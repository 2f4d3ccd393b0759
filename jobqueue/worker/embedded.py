"""A worker that comes and goes with a web process: a child of it, one for each database on a machine.

A process of its own, for a thread would share the interpreter with requests, could end no handler, and would be gone
without a word where a server ends without one. Its standard input is a pipe to the web process; that ends with it,
whatever ends it, and then the worker stops as at SIGTERM.
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

#: How often to look for jobs that another process has enqueued, as long as no worker was needed.
LOOK_EVERY = 15.0
#: Seconds that jobs get to end in; less than web servers leave their own processes.
GRACE = "10"
#: How often to look whether the worker of another web process is gone.
_TURN_EVERY = 0.5
#: How long the web process waits at its end for its worker's, which comes sooner unless something is wrong.
_LONGEST_END = 20.0
#: A worker that does not stay is started again after pauses that grow up to so many seconds.
_LONGEST_PAUSE = 30.0
#: What a process that was forked to serve does first, such as to change its user.
_SETTLING = 1.0
_MANAGED = ("manage.py", "django-admin", "django-admin.py")


class Keeper:
    """Waits for something to do, starts the worker, and starts it again should it die.

    Where another process of this machine has one, it waits until that is gone. Its thread waits all the time, and
    never runs a job.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = delay
        self._wanted, self._stopped = threading.Event(), threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._thread = threading.Thread(target=self._keep, name="jobqueue-embedded", daemon=True)

    def start(self) -> None:
        """Begin; at the process's end the worker is told to stop, and waited for."""
        signals.enqueued.connect(self._enqueued, dispatch_uid="jobqueue-embedded")
        os.register_at_fork(after_in_child=self._let_go)
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Have the worker stop and give back what does not end in time; the autoreloader does not wait for that."""
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
        while not self._wanted.is_set() and not _is_anything_there():
            self._wanted.wait(LOOK_EVERY)
        signals.enqueued.disconnect(dispatch_uid="jobqueue-embedded")
        self._await_turn()
        pause = 0.5
        while not self._stopped.is_set():
            began = SYSTEM.monotonic()
            try:
                end = f"ended with status {self._run_worker()}"
            except OSError as error:  # the system has no room for a process; it may have some later
                end = f"could not be started ({error})"
            if self._stopped.is_set():
                return
            pause = 1.0 if SYSTEM.monotonic() - began > _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
            logger.warning("The embedded worker %s; another one follows in %g s", end, pause)
            self._stopped.wait(pause)

    def _await_turn(self) -> None:
        """Wait until no other worker is embedded on this machine for this database.

        By asking again and again: where threads are green, a lock that is waited for would stop all requests.
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
            self._hang_up()  # the end came while it was started
        return self._child.wait()

    def _hang_up(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()

    def _let_go(self) -> None:
        """Leave worker and lock to the process that was forked from: they are to end with that."""
        if threading.get_ident() == self._thread.ident:
            return  # the fork is to be the worker, where one is started in Python, as gevent does
        atexit.unregister(self.stop)
        self._hang_up()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Role:
    """What this process has to do with the embedded worker; what it forks has a role of its own."""

    keeper: Keeper | None = None
    is_waiting_for_fork = False


def begin() -> None:
    """Keep a worker, if ``EMBEDDED`` is on and requests are served here; call it once the application is made.

    A process that loads the application for those it will fork keeps none; they do.
    """
    conf.refuse_unknown_keys()  # EMBEDED would start nothing, and nobody would know
    if not conf.get("EMBEDDED") or not _is_served_here() or _Role.keeper is not None:
        return
    conf.get("RUNTIME_DIR")  # judged here, where somebody hears of it; in the keeper's thread it would only end that
    if not _is_preloading():
        _keep_one()
    elif not _Role.is_waiting_for_fork:
        _Role.is_waiting_for_fork = True
        os.register_at_fork(after_in_child=_begin_in_child)


def _begin_in_child() -> None:
    if _Role.is_waiting_for_fork:
        _Role.is_waiting_for_fork = False
        _keep_one(_SETTLING)


def _keep_one(delay: float = 0.0) -> None:
    _Role.keeper = Keeper(delay)
    _Role.keeper.start()


def _is_served_here() -> bool:
    """Whether this is a web process: not one of tests, nor a shell or a command with a test client."""
    if hasattr(mail, "outbox"):  # there in test environments alone
        return False
    program = Path(sys.argv[0] if sys.argv else "")
    is_managed = program.name in _MANAGED or (program.parent.name, program.name) == ("django", "__main__.py")
    return not is_managed or any(one.startswith("runserver") for one in sys.argv[1:2])


def _is_preloading() -> bool:
    """Whether gunicorn loads the application before it forks those who serve it."""
    return any(
        frame.f_globals.get("__name__") == "gunicorn.arbiter" and frame.f_code.co_name == "setup"
        for frame in _callers()
    )


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_anything_there() -> bool:
    """Whether jobs wait, or are held by somebody who may be dead."""
    try:
        return any(one.queued or one.in_progress for one in backends.current().depths(1, 1))
    except (DatabaseError, JobQueueError) as error:
        logger.debug("The embedded worker cannot look for jobs: %s", error)
        return False
    finally:
        connections.close_all()


def _lock_opened() -> int | None:
    """Open what is locked as long as a worker runs; where it cannot be had there may be several, which does no harm."""
    name = _lock_name()
    try:
        folder = runtime.opened(make=True)  # private, or whoever can write there could hold the lock for ever
        try:
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        path = runtime.path(name)
        logger.warning("Each web process has a worker of its own, for %s cannot be locked: %s", path, error)
        return None


def _is_taken(descriptor: int) -> bool:
    """Lock it, and say whether somebody else has done so."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks: as where there is no file
    return False


def _lock_name() -> str:
    database = connections.settings[conf.get("DATABASE")]
    parts = [
        os.environ[ENVIRONMENT_VARIABLE],
        *(str(database.get(name)) for name in ("ENGINE", "NAME", "HOST", "PORT")),
    ]
    digest = hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
    return f"embedded-{digest}.lock"
