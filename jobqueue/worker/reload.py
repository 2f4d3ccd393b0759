"""The development reloader, which restarts the worker when the code changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from django.utils.autoreload import iter_all_python_module_files

_LOOK_EVERY = 0.5


def run_again_on_change() -> int:
    """Run this command without ``--reload`` in a child process, and restart it whenever a file changes."""
    command = [sys.executable, *(one for one in sys.orig_argv[1:] if not one.startswith("--rel"))]
    environment = {name: value for name, value in os.environ.items() if name != "JOBQUEUE_WORKER_RELOAD"}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        before = _changed_at()
        worker = subprocess.Popen(command, env=environment)  # noqa: S603 - what the user typed
        try:
            while _changed_at() == before:
                time.sleep(_LOOK_EVERY)
        except KeyboardInterrupt:
            return worker.wait()  # the terminal sent the signal to both
        except SystemExit:
            worker.send_signal(signal.SIGTERM)
            return worker.wait()
        worker.send_signal(signal.SIGTERM)
        worker.wait()


def _changed_at() -> dict[Path, float]:
    """Return when each file of the code last changed. Missing files are left out."""
    found = {}
    for path in iter_all_python_module_files():
        try:
            found[path] = path.stat().st_mtime
        except OSError:
            continue
    return found
