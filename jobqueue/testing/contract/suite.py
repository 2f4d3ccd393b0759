"""The suite that ``pytest --jobqueue-backend`` runs on a third party's backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils.module_loading import import_string

from jobqueue import conf
from jobqueue.backends.base import Backend
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.contract import VERSION, BackendContract

MakeBackend = Callable[[VirtualClock], Backend]


class TestBackend(BackendContract):
    """All promises, on the backend that the command line names."""

    @pytest.fixture
    def make_backend(self, request: pytest.FixtureRequest) -> MakeBackend:
        path = request.config.getoption("--jobqueue-backend")
        if path is None:
            pytest.skip("run it with --jobqueue-backend")
        found = named(path)
        if not isinstance(found, type):
            return found  # type: ignore[no-any-return]  # a function that makes an empty backend
        alias = conf.get("DATABASE")
        return lambda clock: found(alias, clock)


def named(path: str) -> Any:
    """Return the class or function of a dotted path. End the run if there is none, or one for another contract."""
    try:
        found = import_string(path)
    except ImportError as error:
        pytest.exit(f"--jobqueue-backend {path}: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    version = getattr(found, "contract_version", VERSION)
    if version != VERSION:
        pytest.exit(
            f"{path} is written for contract {version}, and this is contract {VERSION}. The changelog says what each "
            "version adds; then set contract_version.",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    return found


def commits(path: str) -> bool:
    """Return whether a backend is in a database, whose tables each test has to find empty."""
    found = named(path)
    return isinstance(found, type) and issubclass(found, SqlBackend)
