"""Tests of the contract as a kit: it passes a backend that keeps all promises, and fails each one that breaks one."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from jobqueue.testing import VirtualClock, contract
from tests.kit.broken import BROKEN, Toy

ROOT = Path(__file__).resolve().parents[2]


def variants(test):
    """The arguments of a test that is marked with parameters, and the empty ones of any other test."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    sets = []
    for mark in marks:
        names = mark.args[0]
        names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
        values = [getattr(value, "values", value) for value in mark.args[1]]
        sets.append([dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values])
    return [{key: value for one in chosen for key, value in one.items()} for chosen in product(*sets)]


def failures(part, kind):
    """Run a part of the contract on a backend, and name the tests that fail."""
    failed = set()
    for name, test in inspect.getmembers(part, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        for given in variants(test):
            clock = VirtualClock()
            known = {"backend": kind(clock=clock), "clock": clock, "make_backend": lambda clock: kind(clock=clock)} | given
            wanted = {key: known[key] for key in inspect.signature(test).parameters if key != "self" and key in known}
            if len(wanted) < len(inspect.signature(test).parameters) - 1:
                continue  # it needs another fixture of pytest
            try:
                test(part(), **wanted)
            except Exception:
                failed.add(name.removeprefix("test_"))
    return failed


@pytest.mark.parametrize(
    ("kind", "part", "failing"), BROKEN, ids=[(kind.__doc__ or kind.__mro__[1].__name__) for kind, _part, _failing in BROKEN]
)
def test_a_broken_promise_is_noticed_where_it_is_made(kind, part, failing):
    part = getattr(contract, part)
    assert failing in failures(part, kind)
    assert failures(part, Toy) == set()
