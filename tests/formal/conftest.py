"""Spin, the model checker: where it is missing the suite says so loudly, and fails if it is asked for."""

from __future__ import annotations

import os
import shutil

import pytest

MISSING = [program for program in ("spin", "cc") if shutil.which(program) is None]
WHY_NO_SPIN = f"not installed: {' and '.join(MISSING)}"


def pytest_configure():
    if MISSING and "spin" in os.environ.get("JOBQUEUE_TEST_REQUIRE", "").split(","):
        pytest.exit(f"JOBQUEUE_TEST_REQUIRE asks for Spin, but {WHY_NO_SPIN}.", returncode=1)


def pytest_terminal_summary(terminalreporter):
    if MISSING:
        terminalreporter.section("THE FORMAL MODEL WAS SKIPPED", sep="!", red=True, bold=True)
        terminalreporter.line(f"tests/formal/lease.pml was not checked: {WHY_NO_SPIN}.")
        terminalreporter.line("Install the package spin and a C compiler, for example 'apt-get install spin gcc'.")


@pytest.fixture
def spin(tmp_path):
    """A folder to check a model in; skips where there is no Spin."""
    if MISSING:
        pytest.skip(f"Spin: {WHY_NO_SPIN}")
    return tmp_path
