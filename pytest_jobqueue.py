"""The pytest plugin of jobqueue: the fixtures of ``jobqueue.testing``, and the contract for backends.

pytest loads this module in every project that has jobqueue installed. Therefore it imports nothing but pytest until a
test uses a fixture, and isn't part of the package ``jobqueue``, whose import takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jobqueue.testing import QueueClock
    from jobqueue.testing.worker_process import WorkerProcess

pytest.register_assert_rewrite("jobqueue.testing.contract")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("jobqueue").addoption(
        "--jobqueue-backend",
        metavar="DOTTED.PATH",
        help="Run the contract of jobqueue's backends on a backend: the path of its class, or of a function that takes "
        "a clock and returns an empty backend.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--jobqueue-backend"):
        suite = str(Path(__file__).with_name("jobqueue") / "testing" / "contract" / "suite.py")
        given = config.args if config.args_source is config.ArgsSource.ARGS else []
        config.args = [*given, *({suite} - {*given})]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run at once if the backend can't be used. pytest-xdist hides what its workers say about it."""
    if path := session.config.getoption("--jobqueue-backend"):
        from jobqueue.testing.contract import suite

        suite.named(path)


def pytest_report_header(config: pytest.Config) -> str | None:
    path = config.getoption("--jobqueue-backend")
    if not path:
        return None
    from jobqueue.testing.contract import VERSION

    return f"jobqueue: contract {VERSION} on {path}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let the contract commit if the backend is in a database. A fixture that is requested later is too late."""
    path = item.config.getoption("--jobqueue-backend")
    if path and item.path.parts[-4:] == ("jobqueue", "testing", "contract", "suite.py"):
        from jobqueue.testing.contract import suite

        if suite.commits(path):
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture
def jobqueue(request: pytest.FixtureRequest) -> Any:
    """The module ``jobqueue.testing``, with a queue that is empty and that the test may use."""
    from jobqueue import backends, testing
    from jobqueue.backends.sql.backend import SqlBackend

    backends.reset()
    if isinstance(backends.current(), SqlBackend):
        request.getfixturevalue("db")
    return testing


@pytest.fixture
def jobqueue_clock(jobqueue: Any) -> Iterator[QueueClock]:
    """A virtual clock, on which the queue runs: ``jobqueue_clock.advance(minutes=10)``."""
    with jobqueue.virtual_time() as clock:
        yield clock


@pytest.fixture
def jobqueue_worker(transactional_db: None, tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker in processes of its own, which takes jobs already. The test commits, as with ``transaction=True``."""
    from jobqueue.testing.worker_process import WorkerProcess

    with WorkerProcess(tmp_path / "jobqueue-worker.log") as worker:
        yield worker
