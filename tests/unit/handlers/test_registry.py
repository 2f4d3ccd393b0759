"""Tests of job types by name and alias: no name is taken twice, and none comes from elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.errors import DuplicateJobType, InvalidHandler, InvalidOption, UnknownJobType
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.options import Options
from jobqueue.handlers.registry import Registry, describe, job_type
from jobqueue.policy.retry import RetryPolicy
from jobqueue.records import Claim
from jobqueue.testing.clock import NOON


def resize(image_id: int, width: int = 800) -> tuple[int, int]:
    return image_id, width


def crop(ctx: JobContext, image_id: int) -> tuple[JobContext, int]:
    return ctx, image_id


async def greet(name: str) -> str:
    return f"hello {name}"


def _type(function, name=None, **values):
    known = {"options": Options(), "policy": RetryPolicy(), "aliases": (), "version": 1, "upgraders": None}
    return job_type(function, name, **(known | values))


def _claim(payload, **values):
    known = {
        "id": "01J",
        "type": "crop",
        "queue": "images",
        "priority": 5,
        "payload": payload,
        "payload_version": 1,
        "attempt": 2,
        "max_retries": 3,
        "fence": 4,
        "scheduled_at": NOON,
        "created_at": NOON,
        "expires_at": None,
        "timeout": timedelta(seconds=5),
        "tenant": "acme",
        "workspace": "north",
        "parent_id": "01H",
        "crash_count": 0,
        "context": None,
        "owner": "host:1:nonce",
    }
    return Claim(**(known | values))


@pytest.fixture
def registry():
    return Registry()


def test_a_type_is_found_by_its_name_and_by_its_former_names(registry):
    kind = _type(resize, "resize.v2", aliases=("resize", "shrink"))
    registry.add(kind)
    assert [registry.get(name) for name in ("resize.v2", "resize", "shrink")] == [kind] * 3
    assert registry.names == {"resize.v2", "resize", "shrink"}


def test_a_type_with_former_names_is_still_one(registry):
    registry.add(_type(resize, aliases=("shrink",)))
    registry.add(_type(crop))
    assert [kind.name for kind in registry] == ["resize", "crop"]


def test_a_name_is_the_functions_unless_another_is_given():
    assert _type(resize).name == "resize"
    assert _type(resize, "images.resize").name == "images.resize"


def test_an_unknown_name_suggests_the_nearest(registry):
    registry.add(_type(resize))
    with pytest.raises(UnknownJobType, match="Did you mean 'resize'"):
        registry.get("resise")


def test_a_name_is_never_read_as_a_path(registry):
    with pytest.raises(UnknownJobType):
        registry.get("tests.unit.handlers.test_registry.resize")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, {}, id="two names"),
        pytest.param({"aliases": ("old",)}, {"aliases": ("old",), "name": "other"}, id="two former names"),
        pytest.param({"aliases": ("other",)}, {"name": "other"}, id="a former name and a name"),
        pytest.param({"name": "other"}, {"aliases": ("other",), "name": "third"}, id="a name and a former name"),
    ],
)
def test_one_name_for_two_functions_is_an_error_that_names_both_places(registry, one, other):
    registry.add(_type(resize, **{"name": "same", **one}))
    with pytest.raises(DuplicateJobType) as caught:
        registry.add(_type(crop, **{"name": "same", **other}))
    assert describe(resize) in str(caught.value)
    assert describe(crop) in str(caught.value)


def test_a_refused_type_leaves_none_of_its_names_behind(registry):
    registry.add(_type(resize, "taken"))
    with pytest.raises(DuplicateJobType):
        registry.add(_type(crop, "free", aliases=("free_too", "taken")))
    assert registry.names == {"taken"}


def test_a_module_imported_anew_may_bring_its_types_again(registry):
    registry.add(_type(resize))
    again = _type(resize)
    registry.add(again)
    assert registry.get("resize") is again


def test_a_place_is_module_name_and_line():
    line = resize.__code__.co_firstlineno
    assert describe(resize) == f"tests.unit.handlers.test_registry.resize, line {line}"


def test_a_claim_calls_the_function_with_its_payload():
    assert _type(resize).call(_claim('{"image_id": 7}')) == (7, 800)


def test_a_claim_calls_the_function_with_its_context():
    context, image_id = _type(crop).call(_claim('{"image_id": 7}'))
    assert image_id == 7
    assert context == JobContext(
        job_id="01J",
        job_type="crop",
        queue="images",
        attempt=2,
        max_retries=3,
        fence=4,
        tenant="acme",
        workspace="north",
        parent_id="01H",
    )


def test_a_claim_of_a_coroutine_function_gives_a_coroutine():
    coroutine = _type(greet).call(_claim('{"name": "Ada"}'))
    with pytest.raises(StopIteration) as finished:
        coroutine.send(None)
    assert finished.value.value == "hello Ada"


def test_a_claim_of_an_older_version_is_upgraded_first():
    kind = _type(resize, version=2, upgraders={1: lambda data: {"image_id": data["id"]}})
    assert kind.call(_claim('{"id": 7}', payload_version=1)) == (7, 800)
    assert kind.call(_claim('{"image_id": 7}', payload_version=2)) == (7, 800)


@pytest.mark.parametrize("name", ["two words", "line\n", "ä b", "n" * 101, 7])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(InvalidOption, match="the job type's name"):
        _type(resize, name)


def test_a_former_name_that_is_none_is_refused():
    with pytest.raises(InvalidOption, match="the job type's name"):
        _type(resize, aliases=("two words",))


def test_a_lambda_needs_a_name():
    with pytest.raises(InvalidOption, match="<lambda>"):
        _type(lambda image_id: None)


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None])
def test_a_version_is_a_whole_number_from_one_on(version):
    with pytest.raises(InvalidHandler, match=r"resize.* has the payload version"):
        _type(resize, version=version)


@pytest.mark.parametrize("step", [0, 2, 3, "1"])
def test_an_upgrader_starts_from_an_older_version(step):
    with pytest.raises(InvalidHandler, match=r"resize.* has upgraders from"):
        _type(resize, version=2, upgraders={step: dict})
