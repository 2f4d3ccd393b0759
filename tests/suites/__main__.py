"""Runs the tests that others wrote for their backends on this queue, and says of each what became of it.

    python -m tests.suites django-6.1.3/tests/tasks

The folder is that of ``tests/tasks`` in Django's sources, or ``tests`` in those of django-tasks. Nothing of it is
copied or changed: the two backends that its settings name are replaced, and the one that runs tasks at once gets a
worker's turn after each enqueue. The exit code is 1 if a test fails that ``excused`` has no reason for.
"""

from __future__ import annotations

import os
import sys
import unittest
from collections import Counter
from importlib import import_module
from io import StringIO
from pathlib import Path

import django

USAGE = 2


class Report(unittest.TextTestResult):
    """Collects the outcome of each test. A test whose subtests fail has failed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}
        self.skipped_here = {}

    def startTest(self, test):  # noqa: N802 - unittest's name
        super().startTest(test)
        self.outcomes[_name(test)] = ""

    def addFailure(self, test, err):  # noqa: N802
        super().addFailure(test, err)
        self._fail(test, err)

    def addError(self, test, err):  # noqa: N802
        super().addError(test, err)
        self._fail(test, err)

    def addSubTest(self, test, subtest, err):  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(test, err)

    def addSkip(self, test, reason):  # noqa: N802
        super().addSkip(test, reason)
        self.skipped_here[_name(test)] = reason

    def _fail(self, test, err):
        self.outcomes[_name(test)] = f"{err[0].__name__}: {err[1]}".splitlines()[0][:200]


def _name(test):
    return f"{type(test).__name__}.{getattr(test, '_testMethodName', test)}"


def main(folder):
    """Run the tests in a folder, and return the exit code."""
    os.environ.update(DJANGO_SETTINGS_MODULE="tests.suites.settings", DJANGO_ALLOW_ASYNC_UNSAFE="1")
    django.setup()
    from django.test.utils import setup_databases, setup_test_environment

    from jobqueue.contrib.django_tasks.tasks_api import task_backends

    _replace_backends(task_backends)
    setup_test_environment()
    setup_databases(verbosity=0, interactive=False)
    suite = _tests_in(folder)
    import_module("jobqueue.contrib.django_tasks.job_types.task_types").late.clear()  # as if their app were installed
    report = unittest.TextTestRunner(stream=StringIO(), resultclass=Report).run(suite)
    return _say(report.outcomes, report.skipped_here)


def _replace_backends(handler):
    """Have the handler of ``TASKS`` make this queue where tests name Django's own backends."""
    from tests.suites.hosts import REPLACED

    make = type(handler).create_connection

    def create(self, alias):
        given = self.settings[alias]
        path = REPLACED.get(given["BACKEND"].rpartition(".")[2], given["BACKEND"])
        self.settings[alias] = {**given, "BACKEND": path}
        return make(self, alias)

    type(handler).create_connection = create


def _tests_in(folder):
    """Load the tests of a package that lies in a folder of any place, with access to the database."""
    found = [*folder.rglob("test_*.py"), *folder.glob("tests.py")]
    names = sorted(path.relative_to(folder).with_suffix("").parts for path in found)
    if (folder / "tests.py").exists():  # those of django-tasks-db, which import its models
        import_module("tests.suites.tasks_db").install()
    if folder.name == "tests":  # the name of our own package
        sys.modules["tests"].__path__.insert(0, str(folder))
    sys.path.insert(0, str(folder.parent))
    suite = unittest.TestSuite()
    for parts in names:
        module = import_module(".".join((folder.name, *parts)))
        found = unittest.defaultTestLoader.loadTestsFromModule(module)
        for case in {type(one) for group in found for one in group}:
            case.databases = {"default"}
        suite.addTest(found)
    return suite


def _say(outcomes, skipped):
    """Print a line for each test and the totals, and return the exit code."""
    reason_for = import_module("tests.suites.excused").reason_for
    totals = Counter()
    for name, error in outcomes.items():
        if name in skipped:
            word, why = "skips itself", skipped[name]
        elif not error:
            word, why = "passes", ""
        else:
            reason = reason_for(name)
            word, why = ("cannot apply", reason) if reason else ("FAILS", error)
        totals[word] += 1
        print(f"{word:14} {name}{': ' if why else ''}{why}")  # noqa: T201
    print(", ".join(f"{count} {word}" for word, count in sorted(totals.items())))  # noqa: T201
    return int(totals["FAILS"] > 0)


if __name__ == "__main__":
    if len(sys.argv) != USAGE or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
