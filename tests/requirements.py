"""The requirements of some tests. Without them, tests are skipped with a notice, or fail if they were requested."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec

from django.conf import settings

CHROMIUM = shutil.which("chromium")


@dataclass(frozen=True)
class Requirement:
    """Something that is there, or is ``missing`` for a reason."""

    title: str
    missing: str
    #: What the last lines of a run say where it is missing.
    heading: str
    lost: str
    remedy: str

    @property
    def reason(self):
        """Why a test is skipped."""
        return f"{self.title}: {self.missing}"


def _not_installed(programs, modules=()):
    names = [one for one in programs if shutil.which(one) is None] + [one for one in modules if find_spec(one) is None]
    return f"not installed: {' and '.join(names)}" if names else ""


POSTGRES = Requirement(
    "Postgres",
    settings.WHY_NO_POSTGRES,
    "POSTGRES WAS SKIPPED",
    "No test ran on Postgres",
    "Set JOBQUEUE_TEST_POSTGRES to a connection string, for example 'host=127.0.0.1 user=me'.",
)
SPIN = Requirement(
    "Spin",
    _not_installed(["spin", "cc"]),
    "THE FORMAL MODEL WAS SKIPPED",
    "tests/formal/lease.pml was not checked",
    "Install the package spin and a C compiler, for example 'apt-get install spin gcc'.",
)
BROWSER = Requirement(
    "A browser",
    _not_installed(["chromium"], ["playwright", "axe_playwright_python"]),
    "THE BROWSER WAS SKIPPED",
    "No page of the admin was looked at in a browser",
    "Install the extra 'test' and the package chromium: 'apt-get install chromium'.",
)

#: By the names that JOBQUEUE_TEST_REQUIRE gives them.
REQUIREMENTS = {"postgres": POSTGRES, "spin": SPIN, "browser": BROWSER}


def refusal():
    """Say why this run cannot be, if JOBQUEUE_TEST_REQUIRE asks for something that is missing."""
    asked = os.environ.get("JOBQUEUE_TEST_REQUIRE", "").split(",")
    lacking = [one.reason for name, one in REQUIREMENTS.items() if name in asked and one.missing]
    return f"JOBQUEUE_TEST_REQUIRE asks for what is missing. {'; '.join(lacking)}." if lacking else ""


def say_what_was_skipped(reporter):
    """Write a section for each requirement whose lack skipped a test of this run."""
    skipped = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    for one in REQUIREMENTS.values():
        if one.missing and any(one.reason in text for text in skipped):
            reporter.section(one.heading, sep="!", red=True, bold=True)
            reporter.line(f"{one.lost}: {one.missing}.")
            reporter.line(one.remedy)
