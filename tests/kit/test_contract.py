"""Tests of the contract as a kit: it passes a backend that keeps all promises, and fails each one that breaks one."""

from __future__ import annotations

import inspect
import json
from itertools import product

import pytest
from _pytest.mark.structures import ParameterSet

from jobqueue.testing import VirtualClock, contract
from tests.kit.broken import BROKEN, Toy
from tests.kit.running import pytest_in


def variants(test):
    """The arguments of a test that is marked with parameters, and the empty ones of any other test."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    sets = []
    for mark in marks:
        names = mark.args[0]
        names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
        values = [value.values if isinstance(value, ParameterSet) else value for value in mark.args[1]]
        sets.append([dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values])
    return [{key: value for one in chosen for key, value in one.items()} for chosen in product(*sets)]


def fixtures(kind):
    """What the tests of the contract ask pytest for."""
    clock = VirtualClock()
    backend = kind(clock=clock)
    made = {"backend": backend, "clock": clock, "make_backend": lambda clock: kind(clock=clock)}
    return made | {"listener": backend.listen()}


def failures(part, kind):
    """Run a part of the contract on a backend, and name the tests that fail. Races take long, and are left out."""
    failed = set()
    for name, test in inspect.getmembers(part, inspect.isfunction):
        for given in variants(test) if name.startswith("test_") and "race" not in name else ():
            known = fixtures(kind) | given
            names = inspect.signature(test).parameters.keys() - {"self"}
            try:
                test(part(), **{one: known[one] for one in names})
            except (Exception, pytest.fail.Exception):
                failed.add(name.removeprefix("test_"))
            finally:
                known["listener"].close()
    return failed


@pytest.mark.parametrize(("kind", "part", "failing"), BROKEN, ids=[kind.__doc__ for kind, _part, _failing in BROKEN])
def test_a_broken_promise_is_noticed_where_it_is_made(kind, part, failing):
    assert failing in failures(getattr(contract, part), kind)


@pytest.mark.parametrize("part", sorted({part for _kind, part, _failing in BROKEN}))
def test_kept_promises_are_noticed_too(part):
    assert failures(getattr(contract, part), Toy) == set()


def run_contract(folder, path, chosen="never", **environment):
    return pytest_in(folder, "-p", "pytest_jobqueue", "--jobqueue-backend", path, "-k", chosen, **environment)


def passed(done):
    assert done.returncode == 0, done.stdout
    return int(done.stdout.rpartition(" passed")[0].split()[-1])


def test_the_command_runs_the_contract_on_a_backend(tmp_path):
    done = run_contract(tmp_path, "tests.kit.broken.Toy")
    assert passed(done) > 2
    assert f"jobqueue: contract {contract.VERSION} on tests.kit.broken.Toy" in done.stdout


def test_the_command_empties_the_tables_of_a_backend_in_a_database(tmp_path):
    options = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"}
    name = {"NAME": str(tmp_path / "x.sqlite3"), "TEST": {"NAME": str(tmp_path / "test.sqlite3")}}
    done = run_contract(
        tmp_path,
        "jobqueue.backends.sqlite.SqliteBackend",
        "never or race_claim_claim",
        DJANGO_SETTINGS_MODULE="tests.documented.settings",
        JOBQUEUE_TEST_DATABASE=json.dumps({"ENGINE": "django.db.backends.sqlite3", "OPTIONS": options, **name}),
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    assert passed(done) > 3


@pytest.mark.parametrize(
    ("path", "told", "options"),
    [
        ("tests.kit.broken.Toi", "does not define a", ""),
        ("tests.kit.broken.Toi", "does not define a", "-n 2"),
        ("tests.kit.broken.Outdated", "is written for contract 0, and this is contract 1", ""),
    ],
)
def test_a_backend_that_the_command_cannot_use_is_told_at_once(tmp_path, path, told, options):
    done = run_contract(tmp_path, path, PYTEST_ADDOPTS=options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert told in done.stdout + done.stderr
