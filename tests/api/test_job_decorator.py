"""Tests of ``@job`` with and without options: what it makes of a function, and what it refuses."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

import jobqueue
from jobqueue import DuplicateJobType, Exponential, Fixed, Handler, InvalidHandler, InvalidOption, JobContext, job
from jobqueue.handlers.job_options import OF_A_TYPE
from jobqueue.handlers.registry import describe, registry
from jobqueue.policy.retry import RetryPolicy
from tests.app.jobs import Resize, greet, resize_image, send_welcome

CONTEXT = JobContext(job_id="01J", job_type="resize_image", queue="images", attempt=2, max_retries=3, fence=4)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Handlers made by a test are gone after it."""
    monkeypatch.setattr(registry, "_types", dict(registry._types))


# The function stays what it is


def test_a_handler_is_called_as_the_function_it_is():
    assert send_welcome(7) == "7 en"
    assert send_welcome(user_id=7, language="de") == "7 de"
    assert resize_image(Resize(image_id=7), CONTEXT) == {"image_id": 7, "width": 800, "attempt": 2}


def test_a_handler_with_options_is_called_as_the_function_too():
    assert send_welcome.using(priority=1)(7) == "7 en"


def test_an_async_handler_is_awaited_as_the_function_it_is():
    assert asyncio.run(greet(CONTEXT, "Ada")) == "hello Ada from 01J"


def test_a_call_checks_nothing_and_stores_nothing(queue):
    assert send_welcome("no number") == "no number en"
    assert jobqueue.backends.current().jobs.stats() == []


def test_an_error_of_the_function_comes_out_as_it_is():
    @job
    def divide(by: int) -> float:
        return 1 / by

    with pytest.raises(ZeroDivisionError):
        divide(0)


def test_a_handler_has_the_name_the_text_and_the_signature_of_its_function():
    @job("images.crop")
    def crop(image_id: int, width: int = 800) -> str:
        """Cut it."""
        return "cut"

    assert (crop.__name__, crop.__doc__, crop.__module__) == ("crop", "Cut it.", __name__)
    assert list(inspect.signature(crop).parameters) == ["image_id", "width"]
    assert crop.name == "images.crop"


def test_a_handler_shows_its_name_and_its_place():
    assert repr(send_welcome) == f"<Handler 'send_welcome': {describe(send_welcome.job_type.function)}>"


# What the options mean


def test_it_works_bare_and_with_parentheses_and_with_a_name():
    def bare() -> None: ...
    def parentheses() -> None: ...
    def named() -> None: ...

    assert [job(bare).name, job()(parentheses).name, job("other")(named).name] == ["bare", "parentheses", "other"]
    assert {"bare", "parentheses", "other"} <= registry.names
    assert "named" not in registry.names


def test_defaults_of_the_type_are_kept_with_it():
    options = resize_image.options
    assert (options.queue, options.priority, options.max_retries, options.timeout) == ("images", 3, 5, 30)


def test_how_failures_are_treated_is_kept_with_the_type():
    policy = resize_image.job_type.policy
    assert policy == RetryPolicy(Exponential(base=2, cap=600), (OSError,), ())


def test_without_options_every_failure_comes_again_with_the_default_wait():
    assert send_welcome.job_type.policy == RetryPolicy(Exponential(), (BaseException,), ())


def test_lists_of_exceptions_may_be_lists():
    @job(retry_on=[OSError], discard_on=[ValueError, KeyError])
    def fetch() -> None: ...

    assert fetch.job_type.policy.retry_on == (OSError,)
    assert fetch.job_type.policy.discard_on == (ValueError, KeyError)


def test_a_wait_may_be_fixed_or_a_function_of_ones_own():
    @job(retry=Fixed(30))
    def fixed() -> None: ...

    @job(retry=lambda attempt, rng: timedelta(seconds=attempt))
    def own() -> None: ...

    waits = [handler.job_type.policy.delay(4, Random()) for handler in (fixed, own)]
    assert waits == [timedelta(seconds=30), timedelta(seconds=4)]


def test_a_type_with_a_version_writes_it_and_reads_older_ones():
    @job(version=2, upgraders={1: lambda data: {"image_id": data["id"]}})
    def crop(image_id: int) -> int:
        return image_id

    draft = crop.draft(7)
    assert (draft.payload, draft.payload_version) == ('{"image_id":7}', 2)
    assert crop.job_type.payload.load('{"id": 7}', 1).image_id == 7


def test_a_former_name_finds_the_type():
    assert registry.get("greet") is registry.get("greet.v2") is greet.job_type


def test_jobs_modules_of_installed_apps_are_found():
    assert {"resize_image", "send_welcome", "greet.v2", "anything"} <= {kind.name for kind in registry}


# What it refuses


def test_two_functions_with_one_name_are_an_error_that_names_both_places():
    def resize_image(image_id: int) -> None: ...

    with pytest.raises(DuplicateJobType) as caught:
        job(resize_image)
    assert "'resize_image'" in str(caught.value)
    assert describe(resize_image) in str(caught.value)
    assert registry.get("resize_image").where in str(caught.value)
    assert re.search(r"tests\.app\.jobs\.resize_image, line \d+", str(caught.value))


def test_a_former_name_that_another_type_has_is_an_error():
    def enlarge(image_id: int) -> None: ...

    with pytest.raises(DuplicateJobType, match="'send_welcome'"):
        job(aliases=["send_welcome"])(enlarge)
    assert "enlarge" not in registry.names


def handler(image_id: int) -> None: ...


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"prority": 1}, "'prority'.*priority"),
        ({"idempotency_key": "seven"}, "'idempotency_key'"),
        ({"scheduled_at": None}, "'scheduled_at'"),
        ({"tenant": "acme"}, "'tenant'"),
        ({"priority": 0}, "priority .* 1 to 10"),
        ({"priority": 11}, "priority .* 1 to 10"),
        ({"max_retries": 0}, "max_retries .* from 1"),
        ({"queue": "q" * 500}, "queue .* 100 characters"),
        ({"timeout": 0}, "timeout "),
        ({"timeout": -1}, "timeout "),
        ({"delay": -1}, "delay "),
        ({"version": 0}, "version"),
        ({"version": 2, "upgraders": {2: dict}}, "upgraders"),
        ({"aliases": ["two words"]}, "name"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_option_that_will_not_do_is_refused_by_name(options, complaint):
    with pytest.raises((InvalidHandler, InvalidOption), match=complaint):
        job(**options)(handler)
    assert "handler" not in registry.names


def test_a_misspelt_option_is_told_with_the_nearest_and_all_there_are():
    with pytest.raises(InvalidHandler) as caught:
        job(timout=5)(handler)
    said = str(caught.value)
    assert said.startswith("@job has no option 'timout'. Did you mean 'timeout'? The options are ")
    signature = inspect.signature(job).parameters.values()
    own = {one.name for one in signature if one.kind is one.KEYWORD_ONLY}
    assert own == OF_A_TYPE
    assert own <= set(re.findall(r"\w+", said))
    with pytest.raises(InvalidHandler, match="Did you mean 'atomic'"):
        job(atomc=True)(handler)
    with pytest.raises(InvalidHandler, match=r"'unique_key': it is an option of single jobs\. Pass it to using\(\)"):
        job(unique_key="x")(handler)


def test_a_misspelt_option_of_one_call_is_told_with_the_nearest():
    complaint = r"^timout is not an option of a job\. Did you mean 'timeout'\? The options are "
    with pytest.raises(InvalidOption, match=complaint):
        send_welcome.using(timout=5)
    for name in sorted(OF_A_TYPE):
        with pytest.raises(InvalidOption, match=f"^{name} is not an option of single jobs: pass it to @job"):
            send_welcome.using(**{name: 1})


def _logged(function):
    """Decorate as a project's own decorators do."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def test_a_method_is_refused_since_no_job_has_its_object():
    with pytest.raises(InvalidHandler, match=r"Orders\.send, line \d+ is a method"):

        class Orders:
            @job
            def send(self, order_id: int) -> None: ...

    with pytest.raises(InvalidHandler, match="is a method"):

        class Invoices:
            @job
            @classmethod
            def send(cls, order_id: int) -> None: ...

    with pytest.raises(InvalidHandler, match="is a method"):

        class Wrapped:
            @job
            @_logged
            def send(self, order_id: int) -> None: ...

    assert "send" not in registry.names


def test_a_static_method_is_a_function():
    class Orders:
        @staticmethod
        @job
        def send_order(order_id: int) -> int:
            return order_id

    assert Orders.send_order(7) == 7
    assert "send_order" in registry.names


def test_one_exception_needs_no_tuple():
    kind = job("with_one_exception", retry_on=OSError, discard_on=KeyError)(handler).job_type
    assert (kind.policy.retry_on, kind.policy.discard_on) == ((OSError,), (KeyError,))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({"aliases": "old_name"}, "aliases", id="a text where a list of names belongs"),
        pytest.param({"retry_on": ["OSError"]}, "retry_on", id="a name where an exception belongs"),
        pytest.param({"retry": 5}, "retry", id="a number where a policy belongs"),
        pytest.param({"retry": Exponential}, "retry", id="a policy's class where a policy belongs"),
        pytest.param({"version": 2, "upgraders": {1: "upgrade"}}, "upgraders", id="a text where an upgrader belongs"),
    ],
)
def test_an_option_of_another_kind_is_refused_at_the_definition_and_not_at_the_first_failure(options, complaint):
    with pytest.raises((InvalidHandler, InvalidOption), match=complaint):
        job(**options)(handler)
    assert registry.names.isdisjoint({"handler", "o"})


def test_a_name_longer_than_its_column_is_refused():
    with pytest.raises(InvalidOption, match="100 characters"):
        job("n" * 101)(handler)


def test_a_lambda_needs_a_name():
    with pytest.raises(InvalidOption, match="<lambda>"):
        job(lambda image_id: None)


def test_what_has_neither_name_nor_place_is_refused():
    with pytest.raises(InvalidHandler, match="partial"):
        job("partly")(functools.partial(handler, 7))
    with pytest.raises(InvalidHandler, match="not 7"):
        job(7)


# Options of one call, and keys


def test_options_of_one_call_are_checked_when_they_are_given():
    with pytest.raises(InvalidOption, match=r"prority .*priority"):
        send_welcome.using(prority=1)
    with pytest.raises(InvalidOption, match=r"priority .* 1 to 10"):
        send_welcome.using(priority=0)


def test_a_handler_with_options_is_still_a_handler_of_its_kind():
    bound = resize_image.using(priority=1)
    assert isinstance(bound, Handler)
    assert type(bound) is type(resize_image)
    assert bound.draft(Resize(image_id=7)).priority == 1
    assert bound.draft(image_id=7).queue == "images"


def test_a_draft_is_decided_and_not_stored(queue):
    draft = send_welcome.using(delay=90, tenant="acme").draft(7)
    assert (draft.type, draft.payload, draft.delay, draft.tenant) == (
        "send_welcome",
        '{"user_id":7,"language":"en"}',
        timedelta(seconds=90),
        "acme",
    )
    assert queue.jobs.stats() == []


def test_two_drafts_of_the_same_are_two_jobs():
    assert send_welcome.draft(7).id < send_welcome.draft(7).id


def test_a_key_is_made_of_the_fields_named():
    key = resize_image.key("image_id", image_id=7, width=800)
    assert key == resize_image.key("image_id", image_id=7, width=1) == resize_image.key(image_id=7)
    assert key != resize_image.key(image_id=7, width=800)
    assert re.fullmatch(r"resize_image-[0-9a-f]{32}", key)


class Parcel(BaseModel):
    """A payload with every kind of validator."""

    parcel_id: int = Field(alias="parcelId")
    weight: float = 1.0
    label: str
    sent_on: date | None = None

    @field_validator("label")
    @classmethod
    def _upper(cls, value: str) -> str:
        return value.upper()

    @field_validator("label", mode="before")
    @staticmethod
    def _text(value: object) -> str:
        return str(value)

    @field_validator("weight", mode="wrap")
    @classmethod
    def _rounded(cls, value: object, handler: Any, info: ValidationInfo) -> float:
        return round(handler(value), 2)

    @field_validator("sent_on")
    @classmethod
    def _of_its_label(cls, value: date | None, info: ValidationInfo) -> date | None:
        return value if info.data["label"] else None

    @model_validator(mode="after")
    def _whole(self) -> Parcel:
        if not self.label or self.weight < self.parcel_id / 1_000_000:
            raise ValueError("too light")
        return self


@pytest.fixture
def send_parcel():
    @job
    def send_parcel(payload: Parcel) -> None: ...

    return send_parcel


@pytest.fixture
def count_up():
    @job
    def count_up(n: int, day: date | None = None) -> None: ...

    return count_up


def test_equal_payloads_have_equal_keys_whatever_they_are_written_as(count_up, send_parcel):
    assert count_up.key("n", n="1") == count_up.key("n", n=1) == count_up.key(n=1.0)
    assert count_up.key(day="2026-01-31") == count_up.key(day=date(2026, 1, 31)) != count_up.key(day=None)
    assert send_parcel.key(parcel_id="7", weight=2) == send_parcel.key(parcelId=7, weight="2.0")
    assert send_parcel.key("label", label="abc") == send_parcel.key("label", label="ABC")
    assert send_parcel.key(label=1, weight=1.001) == send_parcel.key(label="1", weight=1)
    assert send_parcel.key("sent_on", sent_on="2026-01-31", label="x") == send_parcel.key(sent_on=date(2026, 1, 31))
    assert count_up.key(n=1) != count_up.key(n=2)


def test_a_key_of_a_dict_is_made_of_what_the_dict_may_hold():
    @job
    def weigh_all(weights: dict[str, int]) -> None: ...

    @job
    def take_anything(anything: dict) -> None: ...

    assert weigh_all.key(one="1") == weigh_all.key(one=1)
    assert take_anything.key(one="1") != take_anything.key(one=1)


def test_a_key_of_what_no_payload_can_have_is_refused(count_up, send_parcel):
    for wrong in ({"n": "one"}, {"n": None}):
        with pytest.raises(ValidationError, match="n\n"):
            count_up.key(**wrong)
    with pytest.raises(ValidationError, match=r"parcel_?[iI]d\n"):
        send_parcel.key(parcelId="seven")
    with pytest.raises(InvalidOption, match=r"^dey is not a field of the payload\. Did you mean 'day'\?$"):
        count_up.key(n=1, dey="2026-01-31")


def test_a_key_with_a_nonce_is_another():
    assert resize_image.key(image_id=7, nonce="n") != resize_image.key(image_id=7)


class Tree(BaseModel):
    """A model that refers to itself."""

    name: str
    parts: list[Tree] = []


def test_a_model_may_refer_to_itself():
    @job
    def plant(tree: Tree) -> None: ...

    draft = plant.draft(name="oak", parts=[{"name": "leaf"}])
    assert plant.job_type.payload.load(draft.payload, 1) == Tree(name="oak", parts=[Tree(name="leaf")])
