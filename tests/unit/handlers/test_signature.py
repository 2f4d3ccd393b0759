"""Tests of the payload's form from a function's signature, and of the arguments from a payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError

from jobqueue.errors import InvalidHandler
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.payload import PayloadType
from jobqueue.handlers.signature import Signature

if TYPE_CHECKING:
    from decimal import Decimal

CONTEXT = JobContext(job_id="01J", job_type="resize", queue="default", attempt=1, max_retries=3, fence=4)


class Resize(BaseModel):
    image_id: int
    width: int = 800


def _called(function, *args, **kwargs):
    """Enqueue's arguments, through JSON, to the function's arguments."""
    signature = Signature.of(function, "here")
    payloads = PayloadType(signature.form)
    stored = payloads.dump(signature.payload_of(args, kwargs))
    return function(**signature.arguments(payloads.load(stored, 1), CONTEXT))


def model_only(payload: Resize) -> Any:
    return payload


def model_and_context(payload: Resize, ctx: JobContext) -> Any:
    return payload, ctx


def context_and_model(current: JobContext, payload: Resize) -> Any:
    return payload, current


def typed_dict(payload: dict[str, int]) -> Any:
    return payload


def bare_dict(payload: dict) -> Any:
    return payload


def plain(image_id: int, width: int = 800) -> Any:
    return image_id, width


def plain_with_context(ctx: JobContext, image_id: int, *, width: int = 800) -> Any:
    return image_id, width, ctx


def unannotated_context(image_id: int, ctx) -> Any:
    return image_id, ctx


def nested(resize: Resize, note: str) -> Any:
    return resize, note


def nothing() -> Any:
    return "called"


def context_alone(ctx: JobContext) -> Any:
    return ctx


def without_annotations(one, other=2) -> Any:
    return one, other


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (model_only, [Resize(image_id=7)], {}, Resize(image_id=7)),
        (model_only, [{"image_id": 7}], {}, Resize(image_id=7)),
        (model_only, [], {"image_id": 7, "width": 1}, Resize(image_id=7, width=1)),
        (model_only, [], {"payload": Resize(image_id=7)}, Resize(image_id=7)),
        (model_only, [], {"payload": {"image_id": 7}}, Resize(image_id=7)),
        (model_and_context, [], {"image_id": 7}, (Resize(image_id=7), CONTEXT)),
        (context_and_model, [], {"image_id": 7}, (Resize(image_id=7), CONTEXT)),
        (typed_dict, [{"a": 1}], {}, {"a": 1}),
        (typed_dict, [], {"a": 1}, {"a": 1}),
        (bare_dict, [{"a": [1, None]}], {}, {"a": [1, None]}),
        (plain, [7], {}, (7, 800)),
        (plain, [7, 1], {}, (7, 1)),
        (plain, [], {"image_id": 7, "width": 1}, (7, 1)),
        (plain_with_context, [7], {"width": 1}, (7, 1, CONTEXT)),
        (unannotated_context, [7], {}, (7, CONTEXT)),
        (nested, [Resize(image_id=7), "hi"], {}, (Resize(image_id=7), "hi")),
        (nothing, [], {}, "called"),
        (context_alone, [], {}, CONTEXT),
        (without_annotations, [["a"]], {}, (["a"], 2)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_handler_gets_what_enqueue_was_given(function, args, kwargs, expected):
    assert _called(function, *args, **kwargs) == expected


def test_a_model_is_read_from_an_annotation_that_is_text():
    assert Signature.of(model_only, "here").form is Resize


def test_a_field_called_like_the_payload_parameter_is_still_a_field():
    class Envelope(BaseModel):
        payload: str

    def send(payload: Envelope) -> Any:
        return payload

    send.__annotations__["payload"] = Envelope
    assert _called(send, payload="hello") == Envelope(payload="hello")


def test_the_payload_and_its_fields_at_once_are_refused():
    with pytest.raises(ValidationError, match=r"width\n.*Unexpected keyword argument"):
        _called(model_only, Resize(image_id=7), width=1)
    with pytest.raises(ValidationError, match=r"1\n.*Unexpected positional argument"):
        _called(model_only, Resize(image_id=7), 1)


@pytest.mark.parametrize(
    ("args", "kwargs", "complaint"),
    [
        ([], {}, "image_id\n.*required"),
        ([7], {"hight": 1}, "hight\n.*not permitted"),
        ([], {"image_id": 7, "hight": 1}, "hight\n.*not permitted"),
        ([7, 1, 2, 3], {}, "2\n.*Unexpected positional argument(.|\n)*3\n"),
        ([7], {"image_id": 8}, "image_id\n.*multiple values"),
    ],
)
def test_arguments_that_the_function_does_not_have_are_refused_as_a_payload_would(args, kwargs, complaint):
    with pytest.raises(ValidationError, match=complaint):
        _called(plain, *args, **kwargs)


def test_what_is_given_by_name_only_has_no_place():
    def shout(words: str, *, loudly: bool = False) -> tuple[str, bool]:
        return (words, loudly)

    shout.__annotations__ = {"words": str, "loudly": bool}
    assert _called(shout, "hear", loudly=True) == ("hear", True)
    with pytest.raises(ValidationError, match="Unexpected positional argument"):
        _called(shout, "hear", True)


def test_a_derived_model_refuses_fields_that_are_no_parameters():
    with pytest.raises(ValidationError, match="hight"):
        PayloadType(Signature.of(plain, "here").form).dump({"image_id": 7, "hight": 1})


def test_a_derived_model_checks_types():
    with pytest.raises(ValidationError, match="image_id"):
        _called(plain, "seven")


@pytest.mark.parametrize("name", ["json", "copy", "schema", "dict", "validate", "model_dump", "model_fields"])
def test_a_parameter_may_be_called_like_something_pydantic_has(name):
    namespace = {}
    exec(f"def handler({name}: int): return {name}", namespace)  # noqa: S102
    assert _called(namespace["handler"], 7) == 7


def test_a_parameter_that_pydantic_keeps_for_itself_is_refused_at_the_definition():
    def handler(model_config: int) -> None: ...

    with pytest.raises(InvalidHandler, match="here"):
        Signature.of(handler, "here")


def _star(*values: int) -> None: ...


def _double_star(**values: int) -> None: ...


def _positional(value: int, /) -> None: ...


@pytest.mark.parametrize("function", [_star, _double_star, _positional])
def test_a_parameter_that_no_payload_can_fill_is_refused(function):
    with pytest.raises(InvalidHandler, match=r"here .*value"):
        Signature.of(function, "here")


def test_an_annotation_that_exists_for_the_type_checker_only_is_refused_with_a_way_out():
    def price(amount: Decimal) -> None: ...

    with pytest.raises(InvalidHandler, match=r"here.*'Decimal'.*TYPE_CHECKING"):
        Signature.of(price, "here")


def test_a_name_with_a_leading_underscore_is_refused():
    def hidden(_secret: int) -> None: ...

    with pytest.raises(InvalidHandler, match="here"):
        Signature.of(hidden, "here")


class Opaque:
    """Pydantic knows nothing of it."""


def test_a_type_that_pydantic_does_not_know_is_refused():
    def take(thing: Opaque) -> None: ...

    with pytest.raises(InvalidHandler, match=r"here.*Opaque"):
        Signature.of(take, "here")
