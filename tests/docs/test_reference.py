"""Tests of the reference, which must name everything that exists and nothing else."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.db import models
from django.dispatch import Signal

import jobqueue
from jobqueue import api, conf, errors, signals
from jobqueue.backends.base import Backend
from jobqueue.backends.ports import DutyRoster, ErrorReader, JobReader, Metrics, Operator, Retention, WorkerRegistry
from jobqueue.cli import worker_options
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.job_options import _OF_ONE_JOB
from jobqueue.handlers.options import OPTION_NAMES
from jobqueue.models import Alert, Attempt, Job, KnownError, Metric, Pause, Relay, Schedule, StoredLimit, Worker
from jobqueue.observe import logs
from jobqueue.records import Ending, EventKind
from jobqueue.states import JobStatus, Move
from jobqueue.testing.contract import BackendContract
from tests.docs.pages import DOCS, text

PACKAGE = Path(jobqueue.__file__).parent
OF_DJANGO = {"--help", "--version", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}


def rows(page, heading):
    """The first cell of each row below a heading, with the whole row."""
    part = re.split(r"^#+ ", text(page).split(f"# {heading}\n")[1], flags=re.MULTILINE)[0]
    cells = [line for line in part.splitlines() if line.startswith("| ")][1:]
    return {re.match(r"\| (.*?) \|", line)[1]: line for line in cells}


def quoted(cells):
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_setting_is_described_with_its_default():
    listed = {
        name.strip("[`").split("`")[0]: line
        for name, line in rows("reference/settings-and-checks.md", "`JOBQUEUE`").items()
    }
    assert set(listed) == set(conf.SETTINGS)
    for name, setting in conf.SETTINGS.items():
        assert f"### `{name}`\n" in text("reference/settings-and-checks.md")
        shown = re.findall(r"`([^`]+)`", listed[name])[-1]
        assert eval(shown) == setting.default  # noqa: S307 - of our own page


def test_every_check_is_described():
    sources = [path.read_text() for pattern in ("*checks.py", "checks/*.py") for path in PACKAGE.rglob(pattern)]
    known = {found for source in sources for found in re.findall(r'"(jobqueue\w*\.[EW]\d{3})"', source)}
    assert (
        set(re.findall(r"^### `(jobqueue\w*\.\w+)`", text("reference/settings-and-checks.md"), re.MULTILINE)) == known
    )


def test_every_signal_is_described():
    known = {name for name, value in vars(signals).items() if isinstance(value, Signal)}
    table = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", text("reference/signals.md"), re.MULTILINE)
    assert set(table) == known


def test_every_status_and_move_is_described():
    assert quoted(rows("reference/statuses.md", "The five statuses")) == {status.value for status in JobStatus}
    assert set(rows("reference/statuses.md", "Moves")) == {move.value for move in Move}


def test_every_ending_is_described():
    assert quoted(rows("reference/statuses.md", "Endings")) == {ending.value for ending in Ending}


def test_every_end_reason_is_described():
    given = (
        r"""(?:Dead|Stopped)\("([a-z ]+)"\)|_decision\(held, "([a-z ]+)"\)|attempt, "([a-z ]+)"|end_reason = '(\w+)'"""
        r"""|end_reason="(\w+)"|"end_reason": "'(\w+)'\""""
        r"""|"end_reason": "([\w -]+)"|REASON = "([a-z]+)\""""
    )
    rooms = ("policy", "worker", "backends", "relay")
    code = "".join(path.read_text() for room in rooms for path in (PACKAGE / room).rglob("*.py"))
    known = {reason for found in re.findall(given, code) for reason in found if reason}
    assert quoted(rows("reference/statuses.md", "End reasons")) == known


def test_every_option_of_the_worker_is_described():
    parser = load_command_class("jobqueue", "runworker").create_parser("manage.py", "runworker")
    known = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    listed = rows("reference/runworker.md", "Options")
    assert {name for name in quoted(listed) if name.startswith("--")} == known - OF_DJANGO


def test_every_option_of_the_worker_has_its_default_and_its_variable():
    listed = {
        re.search(r"`--([\w-]+)`", cell)[1]: line for cell, line in rows("reference/runworker.md", "Options").items()
    }
    for option in worker_options.OPTIONS:
        default = "" if option.default in (None, "") else f"{option.default:g}"
        assert f"`{worker_options._variable(option.name)}`" in listed[option.name]
        assert not default or f" | {default} | " in listed[option.name]
    for name in (*dict(worker_options.LISTS), *dict(worker_options.FLAGS)):
        assert f"`{worker_options._variable(name)}`" in listed[name]


def test_every_error_is_described():
    known = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert {
        name for name in known - {"Verdict", "StopReason"} if f"`{name}`" not in text("reference/errors.md")
    } == set()


def test_every_public_name_is_in_the_reference():
    reference = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    words = set(re.findall(r"\w+", reference))
    assert set(jobqueue.__all__) - words - {"JobStatus"} == set()


def test_every_option_of_a_handler_is_described():
    declared = set(inspect.signature(api.job).parameters) - {"name", "defaults"} | (OPTION_NAMES - _OF_ONE_JOB)
    assert quoted(rows("reference/handlers.md", "`@job`")) == declared
    assert {name for name in OPTION_NAMES if f"`{name}`" not in text("reference/handlers.md")} == set()


def test_all_of_the_context_is_described():
    known = {one.name for one in fields(JobContext)} - {"attendant"}
    known |= {name for name in vars(JobContext) if callable(getattr(JobContext, name)) and not name.startswith("_")}
    part = text("reference/handlers.md").partition("## `JobContext`")[2]
    assert {name for name in known if not re.search(rf"`{name}[`(]", part)} == set()


def test_every_field_and_event_of_the_log_is_described():
    page = text("how-to/logging.md")
    assert {name for name in logs._FIELDS if f"`{name}`" not in page} == set()
    assert {kind.value for kind in EventKind if f"`{kind.value}`" not in page} == {"progressed"}


@pytest.mark.parametrize("model", [Job, Attempt, KnownError, Metric, Pause, Relay, Worker])
def test_every_column_and_index_is_in_the_model(model):
    page = text("explanation/model.md")
    columns = {field.column for field in model._meta.concrete_fields} - (
        {"id"} if model in (KnownError, Metric, Pause) else set()
    )
    assert {name for name in columns if f"`{name}`" not in page} == set()
    checked = models.CheckConstraint
    named = {one.name for one in (*model._meta.indexes, *model._meta.constraints) if not isinstance(one, checked)}
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_every_verb_of_a_backend_is_in_its_contract():
    page = text("explanation/backend-contract.md")
    verbs = {name for name, value in vars(Backend).items() if callable(value) and not name.startswith("_")}
    told_elsewhere = {"atomic", "in_atomic", "on_commit", "listen", "wake", "wake_on_commit"}
    assert {name for name in verbs - told_elsewhere if f"`{name}`" not in page} == set()
    ports = {
        "jobs": JobReader,
        "operator": Operator,
        "metrics": Metrics,
        "workers": WorkerRegistry,
        "errors": ErrorReader,
        "duties": DutyRoster,
        "retention": Retention,
    }
    verbs = {f"{port}.{name}" for port, kind in ports.items() for name in vars(kind) if not name.startswith("_")}
    assert {name for name in verbs - {"jobs.get"} if f"`{name}`" not in page} == set()


def test_every_test_that_the_contract_names_is_there():
    part = text("explanation/backend-contract.md").partition("## The sentences")[2].partition("\n## ")[0]
    named = {
        name
        for line in part.splitlines()
        if line.startswith("| ")
        for name in re.findall(r"`(\w+)`", line.split(" | ")[-1])
    }
    assert named
    assert {name for name in named if not hasattr(BackendContract, f"test_{name}")} == set()


def test_every_permission_is_described():
    models = (Alert, Job, Pause, Worker, Schedule, StoredLimit)
    named = [one for model in models for one in model._meta.permissions]
    known = {f"jobqueue.{name}" for name, _ in named} | {"jobqueue.view_job"}
    assert quoted(rows("reference/admin.md", "Permissions")) == known
