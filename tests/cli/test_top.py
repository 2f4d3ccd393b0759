"""Tests of `top`: in a terminal, in a pipe, and with names that try to steer the terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from argparse import ArgumentTypeError
from datetime import UTC, datetime

import pytest

from jobqueue.cli.commands import top
from jobqueue.cli.top.screen import Screen
from jobqueue.cli.top.snapshot import Snapshot, snapshot
from jobqueue.observe.health import Level
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import draft, put, put_all, take
from tests.cli.conftest import arguments
from tests.conftest import ON_SQLITE
from tests.worker.harness import until

HOSTILE = "\x1b]0;owned\x07\u202e[bold red]x[/]"


def drawn(seen, width, height=None):
    out = io.StringIO()
    screen = Screen(out, width=width, coloured=False)
    screen._console.print(screen.drawn(seen, height))
    return out.getvalue()


def rows_of(count, columns):
    return tuple((Level.OK, tuple(f"{n}-{'x' * 30}" for _ in range(columns))) for n in range(count))


def test_once_shows_queues_workers_and_running_jobs(run, queue, worker):
    worker("one", owner="me", busy=1)
    first, _second = put_all(queue, draft("send_welcome"), draft("resize_image", queue="images"))
    take(queue, 1, types=frozenset({"send_welcome"}))
    said = run("top", "--once")
    assert said.code == 0
    assert "1 job queued, 1 in progress, 0 dead letters, 1 worker with 1 of 10 slots busy" in " ".join(said.out.split())
    for text in ("images", "one", first, "send_welcome", "1/10"):
        assert text in said.out
    assert "\x1b" not in said.out
    assert run("top").out.split()[2:] == said.out.split()[2:]  # in a pipe
    told = run("top", "--json").json
    assert told["running"] == [
        {"job": first, "type": "send_welcome", "queue": "default", "for": "0s", "attempt": "1", "worker": "one"}
    ]


def test_a_problem_is_told_with_its_exit_code(run, queue):
    put(queue, "send_welcome", scheduled_at=datetime(2026, 1, 1, tzinfo=UTC))
    said = run("top", "--once")
    assert (said.code, "No worker is up" in said.out) == (1, True)


def test_no_name_steers_the_terminal(run, queue, worker):
    worker(HOSTILE, owner="me", queues=(HOSTILE,), version=HOSTILE[:20])
    put_all(queue, draft(HOSTILE, queue=HOSTILE), draft(HOSTILE, queue=HOSTILE))
    take(queue, 1, types=frozenset({HOSTILE}))
    queue.operator.pause(Scope.QUEUE, HOSTILE, HOSTILE)
    out = run("top", "--once").out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)
    assert "[bold red]" in drawn(snapshot(queue), 300)


@pytest.mark.parametrize("width", [80, 160])
def test_the_view_fits_its_terminal(width):
    seen = Snapshot(
        Level.WARNING, "s" * 100, "at", ((Level.ERROR, "f" * 500),) * 9, rows_of(90, 8), rows_of(90, 6), rows_of(90, 6)
    )
    for height in (12, 24, 50):
        lines = drawn(seen, width, height).splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= max(height, 20)
    assert len(re.findall(r"and \d+ more", drawn(seen, width, 24))) == 3
    assert drawn(Snapshot(Level.OK, "nothing", "at"), width, 24).split() == ["ok", "at", "nothing"]


def test_a_missing_package_is_one_sentence(run, monkeypatch):
    monkeypatch.setattr(top, "_SCREEN", "jobqueue.cli.top.no_such_module")
    said = run("top")
    assert (said.code, said.err) == (3, "jobqueue top needs the package rich: pip install 'django-jobqueue[top]'.")


@pytest.mark.parametrize("interval", ["0", "nan", "1e9", "soon"])
def test_a_wrong_interval_is_refused(interval):
    with pytest.raises(ArgumentTypeError, match="is not a number of seconds"):
        top._interval(interval)


class Terminal:
    """A terminal of 80 columns with a command in it."""

    def __init__(self, given):
        self._here, there = pty.openpty()
        fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        given["env"] = {k: v for k, v in given["env"].items() if k not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm"}
        self.process = subprocess.Popen(
            **given,
            stdin=there,
            stdout=there,
            stderr=there,
            start_new_session=True,
            # A shell starts what it runs in the background with Ctrl-C ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(there)
        os.set_blocking(self._here, False)
        self.shown = ""

    def read(self):
        try:
            while chunk := os.read(self._here, 65_536):
                self.shown += chunk.decode(errors="replace")
        except (BlockingIOError, OSError):
            pass
        return self.shown


@ON_SQLITE
def test_the_live_view_is_drawn_again_and_ctrl_c_restores_the_terminal(queue, alias):
    terminal = Terminal(arguments(alias, "top", "--interval", "0.1"))
    try:
        until(lambda: "0 jobs queued" in terminal.read(), what="the first view")
        put(queue, "send_welcome")
        until(lambda: "1 job queued" in terminal.read(), what="the next view")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(30) == 0
        assert terminal.read().count("\x1b[?1049h") == terminal.shown.count("\x1b[?1049l") == 1
        assert "Traceback" not in terminal.shown
        assert terminal.shown.rstrip().endswith(("\x1b[?25h", "\x1b[?1049l"))
    finally:
        terminal.process.kill()
        terminal.process.wait()


@ON_SQLITE
def test_rich_is_not_imported_by_other_commands(queue, alias):
    given = arguments(alias, "status")
    given["args"][2] += "\nassert not any(name.partition('.')[0] == 'rich' for name in sys.modules)"
    done = subprocess.run(**given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
