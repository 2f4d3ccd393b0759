"""Handlers for tests of workers that die as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from jobqueue import Fixed, JobContext, job
from tests.app.ledger import note, recorded, wait_at


@job(retry=Fixed(0), max_retries=2)
def kill_worker(ctx: JobContext) -> None:
    """Kill the supervisor, the zygote and all executors."""
    note("start", ctx)
    os.killpg(0, signal.SIGKILL)


@job(retry=Fixed(0))
def leave_behind(ctx: JobContext, what: str) -> None:
    """Start something that outlives this process, and wait to be killed."""
    with recorded(ctx):
        if what == "a program":
            child = subprocess.Popen(["sleep", "60"], start_new_session=True).pid
        elif (child := os.fork()) == 0:
            time.sleep(60)
            os._exit(0)
        note("child", ctx, child=child)
        wait_at("never")
