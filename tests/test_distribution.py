"""Tests of the distribution: a crash is one failure and hides none, and exclusive tests run alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import distribution

ROOT = Path(__file__).resolve().parents[1]

CONFTEST = """
from tests.distribution import Distribution


def pytest_xdist_make_scheduler(config, log):
    return Distribution(config, log)
"""

#: Two processes that take the places of others: the second knows the tests when the first has run one.
LATE = """

import os, time
from pathlib import Path


def pytest_collection_modifyitems():
    process, here = os.environ.get("PYTEST_XDIST_WORKER"), Path(__file__).parent
    (here / f"{process} is there").touch()
    for one, condition in (("gw2", "gw3 is there"), ("gw3", "gw2 ran a test")):
        while process == one and not (here / condition).exists():
            time.sleep(0.01)


def pytest_runtest_teardown():
    (Path(__file__).parent / f"{os.environ['PYTEST_XDIST_WORKER']} ran a test").touch()
"""

FILE = """
import json, os, signal, time
from pathlib import Path

import pytest

NOTES = Path(__file__).parents[2] / "notes"


@pytest.mark.parametrize("number", range(3))
def test_one(number):
    began = time.monotonic()
    if Path(__file__).stem.startswith("test_crash") and number == 1:
        with NOTES.open("a") as notes:
            notes.write(json.dumps(["crash", began, began]) + "\\n")
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(0.3)
    with NOTES.open("a") as notes:
        notes.write(json.dumps([Path(__file__).stem, began, time.monotonic()]) + "\\n")
"""


@pytest.fixture
def run(tmp_path):
    """A function that runs files of tests in two processes; it returns what pytest said, and when each test ran."""

    def run(*files, further=""):
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "conftest.py").write_text(CONFTEST + further)
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(FILE)
        options = ["-n2", "--dist=loadfile", "--no-loadscope-reorder", "--reruns=1", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:faulthandler", *options, *files],
            cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        return done, [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]

    return run


def test_a_test_that_ends_its_process_has_failed_and_all_others_are_run_once(run):
    done, notes = run("tests/a/test_crash.py", "tests/a/test_b.py", "tests/a/test_c.py")
    assert done.returncode == 1, done.stdout
    assert "crashed while running 'tests/a/test_crash.py::test_one[1]'" in done.stdout
    assert "1 failed, 8 passed" in done.stdout
    assert sorted(name for name, *_ in notes) == ["crash"] + ["test_b"] * 3 + ["test_c"] * 3 + ["test_crash"] * 2


def test_processes_that_end_at_once_are_replaced_one_by_one(run):
    files = ("test_crash", "test_crash_too", "test_b", "test_c")
    done, notes = run(*(f"tests/a/{name}.py" for name in files), further=LATE)
    assert done.returncode == 1, done.stdout
    assert "INTERNALERROR" not in done.stdout
    assert "2 failed, 10 passed" in done.stdout
    assert [name for name, *_ in notes].count("crash") == 2


def test_what_wants_to_be_alone_comes_last_and_alone(run):
    done, notes = run("tests/a/test_a.py", "tests/a/test_b.py", "tests/a/test_c.py", distribution.ALONE)
    assert done.returncode == 0, done.stdout
    assert "12 passed" in done.stdout
    alone = Path(distribution.ALONE).stem
    assert [name for name, *_ in notes[-3:]] == [alone] * 3
    assert min(began for name, began, _ in notes if name == alone) > max(end for name, _, end in notes if name != alone)
    assert len({name for name, *_ in notes}) == 4


def test_a_single_file_needs_no_second_process():
    assert distribution.processes(["tests/test_distribution.py::test_one"]) == 0
    assert distribution.processes(["tests/a.py", "tests/a.py::test_one", "tests/b.py"]) == 2
    assert distribution.processes(["tests"]) >= 2
    assert distribution.processes(["tests/admin", "tests/b.py"]) == distribution.processes(["tests"])
