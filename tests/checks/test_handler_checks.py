"""Tests of the checks of handlers: transactions that are too long for SQLite, and secrets in payloads."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from django.core.checks import WARNING, run_checks
from django.db import connections
from pydantic import BaseModel, Field

from jobqueue.api import decorator
from jobqueue.checks import check_handlers, handlers
from jobqueue.handlers.job_options import lease_of, options_of
from jobqueue.handlers.registry import Registry, job_type
from jobqueue.policy.retry import RetryPolicy


@pytest.fixture
def register(monkeypatch):
    """A function that registers a handler where no other one is."""
    registry = Registry()
    monkeypatch.setattr(handlers, "registry", registry)

    def register(function, *, atomic=False, lease=None, name=None, version=1, upgraders=None, **options):
        kind = job_type(
            function,
            name,
            options=options_of(options),
            policy=RetryPolicy(),
            aliases=("former_name",),
            version=version,
            upgraders=upgraders,
            lease=lease_of(lease),
            atomic=atomic,
        )
        registry.add(kind)

    return register


def book(order_id: int) -> None:
    return None


def _ids():
    return [message.id for message in check_handlers()]


def _only(check_id):
    """Return the one message with an id."""
    (message,) = (one for one in check_handlers() if one.id == check_id)
    return message


def test_the_checks_run_with_djangos(register, databases):
    register(book, atomic=True)
    assert "jobqueue.W007" in [message.id for message in run_checks()]


def test_no_handlers_give_no_message(register):
    assert check_handlers() == []


# jobqueue.W007


def test_w007_an_atomic_handler_that_may_outlast_a_third_of_its_lease(register, settings):
    settings.JOBQUEUE = {"DATABASE": "default"}
    register(book, atomic=True, timeout=21)
    message = _only("jobqueue.W007")
    assert message.level == WARNING
    assert "'book'" in message.msg
    assert "21 s" in message.msg
    assert "60 s" in message.msg
    assert message.hint == "Give @job timeout=20 or less, or lease=63 or more."


def test_w007_the_default_time_limit_is_too_long_too(register, settings):
    register(book, atomic=True)
    assert "300 s" in _only("jobqueue.W007").msg
    settings.JOBQUEUE = {"TIMEOUT": 10}
    assert _ids() == []


def test_w007_no_lease_helps_a_handler_that_may_work_for_an_hour(register):
    register(book, atomic=True, timeout=3_600)
    assert _only("jobqueue.W007").hint == "Give @job timeout=20 or less."


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param({"atomic": True, "timeout": 20}, id="a third of the lease is not more than a third"),
        pytest.param({"atomic": True, "timeout": 21, "lease": 63}, id="its own lease is long enough"),
        pytest.param({"atomic": True, "timeout": 300, "lease": timedelta(minutes=15)}, id="or very long"),
        pytest.param({"timeout": 300}, id="it is not atomic"),
    ],
)
def test_w007_is_silent_where_there_is_no_risk(register, declared):
    register(book, **declared)
    assert _ids() == []


def test_w007_a_short_lease_of_its_own_is_the_one_that_counts(register):
    register(book, atomic=True, timeout=5, lease=10)
    assert _only("jobqueue.W007").hint == "Give @job timeout=3.3 or less, or lease=15 or more."


@pytest.mark.parametrize(("lease", "warns"), [("20", True), ("90", False), ("soon", True), ("nan", True), ("", True)])
def test_w007_the_environment_may_give_workers_another_lease(register, monkeypatch, lease, warns):
    monkeypatch.setenv("JOBQUEUE_WORKER_LEASE", lease)
    register(book, atomic=True, timeout=30)
    assert ("jobqueue.W007" in _ids()) is warns


@pytest.mark.parametrize("timeout", [0.7, 1, 7, 19.99, 20.01, 300, 1_200.5])
@pytest.mark.parametrize("lease", [2, 10, 20, 59.9, 60])
def test_w007_who_takes_its_advice_is_not_warned_again(register, timeout, lease):
    register(book, atomic=True, timeout=timeout, lease=lease)
    for message in check_handlers():
        shorter = float(message.hint.split("timeout=")[1].split(" ")[0])
        register(book, atomic=True, timeout=shorter, lease=lease)
        assert _ids() == []
        longer = message.hint.partition("lease=")[2].split(" ")[0]
        if longer:
            register(book, atomic=True, timeout=timeout, lease=float(longer))
            assert _ids() == []


def test_w007_is_about_sqlite_alone(register, settings, monkeypatch):
    given = connections.settings["default"] | {"ENGINE": "django.db.backends.postgresql", "NAME": "never opened"}
    monkeypatch.setitem(connections.settings, "elsewhere", given | {"OPTIONS": {}})
    settings.JOBQUEUE = {"DATABASE": "elsewhere"}
    register(book, atomic=True)
    assert "jobqueue.W007" not in _ids()
    del connections["elsewhere"]


@pytest.mark.parametrize("value", [[], {"TIMEOUT": 0}, {"DATABASE": "xyzzy"}, {"DATABASE": 7}])
def test_w007_leaves_settings_that_will_not_do_to_their_own_check(register, settings, value):
    settings.JOBQUEUE = value
    register(book, atomic=True)
    assert _ids() == []


# jobqueue.W011


@pytest.mark.parametrize(
    ("version", "steps", "missing"),
    [(2, [], 1), (3, [], 2), (3, [1], 2), (4, [1, 3], 2), (1, [], None), (2, [1], None), (5, [3, 4], None)],
)
def test_w011_a_version_that_no_upgrader_leads_on_from(register, version, steps, missing):
    register(book, version=version, upgraders=dict.fromkeys(steps, dict))
    if missing is None:
        assert _ids() == []
    else:
        message = _only("jobqueue.W011")
        assert f"but no upgrader from version {missing}:" in message.msg
        assert f"upgraders={{{missing}: ...}}" in message.hint


# jobqueue.W009


class Account(BaseModel):
    user: str
    api_key: str


class Nested(BaseModel):
    accounts: list[Annotated[Account, Field(description="who pays")] | None] = []
    by_name: dict[str, Account] = {}


class Endless(BaseModel):
    inner: Endless | None = None
    others: list[Endless] = []
    password: str = ""


class Aliased(BaseModel):
    code: str = Field(alias="accessToken")


class Harmless(BaseModel):
    private_key_ref: str
    token_id: int
    max_tokens: int = 100
    used_tokens: float | None = None
    has_password: bool = False
    reset_password: bool | None = None
    key: str = ""


def test_w009_a_parameter_that_looks_like_a_secret(register):
    def charge(order_id: int, card_token: str, password: Any = None) -> None:
        return None

    register(charge)
    message = _only("jobqueue.W009")
    assert message.level == WARNING
    assert "'charge'" in message.msg
    assert "card_token, password" in message.msg
    assert "private_key_ref" in message.hint


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (Account, "api_key"),
        (Nested, "accounts.api_key, by_name.api_key"),
        (Endless, "password"),
        (Aliased, "code"),
    ],
)
def test_w009_a_model_and_the_models_within_it(register, model, found):
    def charge(payload) -> None:
        return None

    charge.__annotations__["payload"] = model
    register(charge)
    assert f"look like secrets: {found}. " in _only("jobqueue.W009").msg


def test_w009_is_told_once_for_each_handler_by_name(register):
    def charge(password: str) -> None:
        return None

    register(charge, name="b")
    register(charge, name="a")
    assert [message.msg.split("'")[1] for message in check_handlers()] == ["a", "b"]


def test_w009_references_numbers_and_flags_are_no_secrets(register):
    def charge(payload: Harmless) -> None:
        return None

    register(charge)
    assert _ids() == []


@pytest.mark.parametrize("kind", [dict, dict[str, Any]])
def test_w009_what_a_dict_will_hold_nobody_knows(register, kind):
    def charge(payload) -> None:
        return None

    charge.__annotations__["payload"] = kind
    register(charge)
    assert _ids() == []


@pytest.mark.parametrize("kind", [str, int, Any, Literal["a"], str | None, list[Annotated[str, Field(max_length=3)]]])
def test_w009_a_secret_is_one_in_whatever_form(register, kind):
    def charge(password) -> None:
        return None

    charge.__annotations__["password"] = kind
    register(charge)
    assert _ids() == ["jobqueue.W009"]


def test_what_is_declared_with_job_is_checked(monkeypatch):
    registry = Registry()
    monkeypatch.setattr(decorator, "registry", registry)
    monkeypatch.setattr(handlers, "registry", registry)

    @decorator.job(atomic=True)
    def charge(password: str) -> None:
        return None

    assert _ids() == ["jobqueue.W007", "jobqueue.W009"]


# W010: a transaction that does not hold what the handler writes


@pytest.mark.postgres
def test_w010_an_atomic_handler_apart_from_its_data_is_named(register, settings):
    settings.JOBQUEUE = {"DATABASE": "postgres"}
    register(book, atomic=True)
    told = _only("jobqueue.W010")
    assert "'book'" in told.msg
    assert "'postgres'" in told.msg
    assert "jobqueue.W010" in told.hint
    assert _ids() == ["jobqueue.W010"]


@pytest.mark.parametrize("given", [{}, {"DATABASE": "default"}, {"DATABASE": "nowhere"}, {"DATABASE": 7}])
def test_w010_beside_its_data_it_is_in_order(register, settings, given):
    settings.JOBQUEUE = given
    register(book, atomic=True)
    assert "jobqueue.W010" not in _ids()


# W029: a fair queue by a field that the payload does not have


def test_w029_a_misspelt_field_of_a_fair_queue(register, settings):
    settings.JOBQUEUE = {"QUEUES": {"imports": {"fair": "order_ids"}}}
    register(book, queue="imports")
    message = _only("jobqueue.W029")
    assert message.level == WARNING
    assert all(word in message.msg for word in ("'imports'", "'order_ids'", "'book'"))
    assert message.hint == "Did you mean 'order_id'?"


@pytest.mark.parametrize(
    ("queue", "fair"), [("imports", "order_id"), ("imports", "tenant"), ("imports", "workspace"), ("mail", "order_ids")]
)
def test_w029_is_silent_where_jobs_have_the_value(register, settings, queue, fair):
    settings.JOBQUEUE = {"QUEUES": {"imports": {"fair": fair}}}
    register(book, queue=queue)
    assert _ids() == []
