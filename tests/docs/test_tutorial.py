"""Tests of the tutorial: its files are written, its commands run, and its output compared."""

from __future__ import annotations

import contextlib
import http.cookiejar
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from jobqueue.clock import SYSTEM
from tests.docs.pages import DOCS, ROOT, blocks

DEADLINE = 60.0
PASSWORD = "correct horse battery staple"

#: What differs from one run to the next.
VARYING = (
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), "TIME"),
    (re.compile(r"worker \S+:\d+:[0-9a-f]+"), "worker NAME"),
    (re.compile(r"\d+ ms|\d+\.\d s"), "LENGTH"),
    (re.compile(r"\(sqlite, .*\)"), "(sqlite, FILE)"),
    (re.compile(r"\b\d+s( ago)?\b"), "AGE"),
    (re.compile(r"[ \t]+"), " "),
)

#: Commands that say with their exit code what they found.
EXIT_CODES = {"python manage.py jobqueue enqueue send_receipt": 3}


def levelled(text):
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


def assert_printed(expected, output):
    """Each line is part of a line of the output, and they come in that order."""
    lines = iter(levelled(output).splitlines())
    for wanted in levelled(expected).splitlines():
        assert any(wanted.strip() in line for line in lines), f"{wanted!r} was not printed. What was:\n{output}"


def until(found, what):
    end = SYSTEM.monotonic() + DEADLINE
    while not (answer := found()):
        assert SYSTEM.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
    return answer


class Reader:
    """Somebody who does what the tutorial says, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = ""
        self.running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        unwanted = ("DJANGO_", "JOBQUEUE_")
        own = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        self.environment = own | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "XDG_RUNTIME_DIR": str(folder.parent / "run"),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "DJANGO_COLORS": "nocolor",
        }

    def write(self, name: str, text: str) -> None:
        """Add to a file, as a reader adds what a page shows."""
        path = self.folder / name
        path.write_text((path.read_text() if path.exists() else "") + text)

    def type(self, commands: str) -> None:
        """Run the commands of one block; a block that installs is done already."""
        if "pip install" in commands:
            return
        if commands.strip() == "python manage.py runworker":
            self.start("worker", commands.split())
            return
        commands = commands.replace("createsuperuser", "createsuperuser --noinput")
        if "runserver" in commands:
            commands, _, server = commands.strip().rpartition("\n")
            self.start("server", [*server.split(), "--noreload", self.address])
        status, self.output = self.at_a_terminal(commands)
        expected = next((code for command, code in EXIT_CODES.items() if commands.startswith(command)), 0)
        assert status == expected, f"{commands}\n{self.output}"

    def at_a_terminal(self, commands: str) -> tuple[int, str]:
        here, there = pty.openpty()
        done = subprocess.Popen(
            ["sh", "-c", commands],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=there,
            stderr=there,
        )
        os.close(there)
        seen = b""
        with contextlib.suppress(OSError):  # how Linux tells that the other end is closed
            while part := os.read(here, 4096):
                seen += part
        os.close(here)
        return done.wait(DEADLINE), seen.decode().replace("\r\n", "\n")

    def start(self, name: str, command: list[str]) -> None:
        log = self.folder.parent / f"{name}.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=sink, stderr=subprocess.STDOUT
            )
        self.running[name] = (process, log)

    def end(self, name: str) -> str:
        """Press Ctrl-C; say what was printed."""
        process, log = self.running.pop(name)
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE)
        return log.read_text()

    def end_all(self) -> None:
        for process, _ in self.running.values():
            process.kill()
            process.wait()


class Browser:
    """Just enough of one to log in to the admin and press a button."""

    def __init__(self, address: str) -> None:
        self.address = f"http://{address}"
        cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))

    def get(self, path: str) -> str:
        return self._read(urllib.request.Request(self.address + path))  # noqa: S310 - our own server

    def post(self, path: str, page: str, **fields: str) -> str:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        data = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode()
        return self._read(urllib.request.Request(self.address + path, data))  # noqa: S310

    def _read(self, request) -> str:
        with self.opener.open(request, timeout=DEADLINE) as answer:
            return answer.read().decode()

    def is_served(self) -> bool:
        try:
            return bool(self.get("/admin/login/"))
        except urllib.error.URLError:
            return False


def retry_in_the_admin(address):
    browser = Browser(address)
    until(browser.is_served, "the web server")
    there = "/admin/jobqueue/deadletter/"
    login = browser.get("/admin/login/")
    listed = browser.post(f"/admin/login/?next={there}", login, username="me", password=PASSWORD)
    assert "the printer does not answer" in listed
    error = browser.get(re.search(rf'"({there}by_error/\?fingerprint=\w+)"', listed)[1])
    assert "Traceback" in error
    job = re.search(rf'"({there}[0-9A-Z]{{26}})/change/', error)[1]
    page = browser.get(f"{job}/change/")
    assert "Traceback" in page
    assert page.count("jq-is-attempt") == 2
    assert f'formaction="{job}/retry/"' in page
    after = browser.post(f"{job}/retry/", page)
    assert "1 job is queued again." in after


@pytest.fixture
def reader(tmp_path):
    (tmp_path / "run").mkdir()
    folder = tmp_path / "tutorial"
    folder.mkdir()
    reader = Reader(folder)
    yield reader
    reader.end_all()


def test_the_tutorial_does_what_it_says(reader):
    for kind, text in blocks(DOCS / "tutorial.md"):
        if kind == "python":
            reader.write(text.splitlines()[0].removeprefix("# "), text)
        elif kind == "sh":
            reader.type(text)
        elif kind == "text" and "worker" in reader.running:
            retry_in_the_admin(reader.address)
            log = reader.running["worker"][1]
            until(lambda log=log: "Job completed" in log.read_text(), "the retried job")
            assert_printed(text, reader.end("worker"))
        elif kind == "text":
            assert_printed(text, reader.output)
    assert "worker" not in reader.running
