"""Tests of the records of errors: informative, without secrets, and robust against any error."""

from __future__ import annotations

import json
import linecache
import sys
from datetime import timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from jobqueue.clock import SYSTEM
from jobqueue.errors import Cancel, Discard, PayloadInvalid, PayloadTooNew, Retry, Snooze
from jobqueue.handlers.options import Options
from jobqueue.handlers.registry import job_type
from jobqueue.observe.failures import class_of, failure_of, message_of, traceback_of
from jobqueue.policy.redaction import REDACTED
from jobqueue.policy.retry import RetryPolicy
from jobqueue.records import Assignment, Ending
from jobqueue.records.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT

SECRET = "k7-Zq9-mmw-41x"
BETWEEN = "\nThis led to another error:\n\n"


class Mute(Exception):
    """An error that fails when it is asked for its words."""

    def __init__(self, failure):
        self.failure = failure
        super().__init__()

    def __str__(self):
        raise self.failure

    __repr__ = __str__


class Wordless(Exception):
    """An error whose words are no text."""

    def __str__(self):
        return 7


class Order(BaseModel):
    card: str
    amount: int


def _raised(error, cause=None):
    """Let an error be raised, so that it has a traceback."""
    try:
        if cause is None:
            raise error
        raise error from cause
    except BaseException as caught:
        return caught


def _elsewhere(error):
    try:
        raise error from None
    except BaseException as caught:
        return caught


def _described(error, **values):
    return failure_of(error, Ending.FAILED, job_type="charge", **values)


def test_an_errors_class_words_and_place_are_kept():
    failure = _described(_raised(OSError(28, "disk full")), duration=timedelta(seconds=3))
    assert (failure.ending, failure.error_class, failure.duration) == (Ending.FAILED, "OSError", timedelta(seconds=3))
    assert failure.message == "[Errno 28] disk full"
    assert failure.traceback.startswith("Traceback (most recent call last):\n")
    assert "test_failures.py" in failure.traceback
    assert "in _raised" in failure.traceback
    assert failure.traceback.endswith("OSError: [Errno 28] disk full\n")


def test_a_class_is_named_with_its_module_unless_it_is_built_in():
    assert class_of(KeyError()) == "KeyError"
    assert class_of(json.JSONDecodeError("no", "", 0)) == "json.decoder.JSONDecodeError"
    assert class_of(Wordless()) == f"{__name__}.Wordless"


# Words that cannot be had


@pytest.mark.parametrize("failure", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), RecursionError()])
def test_an_error_that_cannot_be_read_is_described_all_the_same(failure):
    described = _described(_raised(Mute(failure)))
    assert described.message == f"(no message: __str__ raised {type(failure).__name__})"
    assert described.error_class == f"{__name__}.Mute"
    assert described.traceback.endswith(f"Mute: {described.message}\n")


def test_words_that_are_no_text_are_words_that_cannot_be_read():
    assert message_of(Wordless()) == "(no message: __str__ raised TypeError)"


def test_an_error_that_cannot_be_read_may_stand_in_a_chain_and_in_a_group():
    group = ExceptionGroup("two failed", [Mute(ValueError()), OSError("disk")])
    text = traceback_of(_raised(RuntimeError("at last"), _raised(group)))
    assert "Mute: (no message" in text
    assert "OSError: disk" in text
    assert text.endswith("RuntimeError: at last\n")


@given(words=st.text(alphabet=st.characters(), max_size=200))
def test_whatever_the_words_are_they_can_be_stored(words):
    failure = _described(_raised(ValueError(words)))
    for text in (failure.message, failure.traceback):
        assert "\0" not in text
        text.encode("utf-8")


def test_long_words_are_cut_and_of_a_long_traceback_the_end_is_kept():
    error = None
    for number in range(10):
        error = _raised(ValueError("a" * 100_000 + str(number)), error)
    error.add_note("the end")
    failure = _described(error)
    assert failure.message == "a" * (MESSAGE_LIMIT - 1) + "…"
    assert len(failure.traceback) == TRACEBACK_LIMIT
    assert failure.traceback.endswith("aaa…\nthe end\n")


def _deep(depth, error):
    if depth:
        _deeper(depth - 1, error)
    raise error


def _deeper(depth, error):
    _deep(depth - 1, error)


def _from_the_depths():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(60_000)
    try:
        _deep(50_000, OSError("disk"))
    except OSError as error:
        return error
    finally:
        sys.setrecursionlimit(limit)


def _of_a_long_line():
    linecache.cache["<long>"] = (1, None, ["raise ValueError(" + "x" * 20_000_000 + ")"], "<long>")
    try:
        exec(compile("raise ValueError(7)", "<long>", "exec"))  # noqa: S102 - code that a program made
    except ValueError as error:
        return error
    finally:
        del linecache.cache["<long>"]


def _of_many_complaints():
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(list[int]).validate_python(["x"] * 300_000)
    return caught.value


def _noted(error, *notes):
    error.__notes__ = list(notes)
    return error


LARGE = "password=" + "word=x, --token y, ://a:b@c " * 700_000


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: _raised(ValueError(LARGE)), id="words"),
        pytest.param(lambda: _raised(OSError("disk"), _raised(ValueError(LARGE))), id="a cause"),
        pytest.param(lambda: _raised(ExceptionGroup(LARGE[:999], [ValueError(LARGE)] * 20)), id="a group"),
        pytest.param(lambda: _raised(_noted(OSError("disk"), *[LARGE] * 20)), id="notes"),
        pytest.param(_from_the_depths, id="frames"),
        pytest.param(_of_a_long_line, id="a frame"),
        pytest.param(_of_many_complaints, id="complaints"),
    ],
)
def test_however_much_there_is_of_an_error_it_is_described_at_once(make):
    error = make()
    began = SYSTEM.monotonic()
    failure = _described(error, payload=json.dumps({"password": SECRET}))
    assert SYSTEM.monotonic() - began < 2.0  # a tenth of it, on a machine that does nothing else
    assert failure.message
    assert failure.traceback.startswith(("Traceback", "…"))


def test_of_a_deep_traceback_both_ends_are_kept():
    text = traceback_of(_from_the_depths())
    assert "in _from_the_depths" in text
    assert " more\n" in text
    assert text.count("in _deep") < 300


def test_an_error_without_words_is_known_by_its_class():
    failure = _described(_raised(AssertionError()))
    assert failure.message == "AssertionError"
    assert failure.traceback.endswith("\nAssertionError\n")


def test_an_errors_notes_are_kept_without_secrets():
    error = _raised(_noted(OSError("disk"), "while it wrote page 7", 7, f"password={SECRET}"))
    text = _described(error).traceback
    assert text.endswith(f"OSError: disk\nwhile it wrote page 7\npassword={REDACTED}\n")


class Liar(ExceptionGroup):
    """An error of which nothing can be looked at."""

    def _fail(self):
        raise KeyError("no")

    exceptions = __cause__ = __context__ = __notes__ = __traceback__ = property(_fail)


Liar.__module__ = property(Liar._fail)


def test_an_error_of_which_nothing_can_be_looked_at_is_described_all_the_same():
    failure = _described(Liar("words", [OSError()]))
    assert failure.message.startswith("words")
    assert "Liar" in failure.error_class


def test_an_error_from_the_depths_is_described():
    def sink():
        sink()

    with pytest.raises(RecursionError) as caught:
        sink()
    failure = _described(caught.value)
    assert (failure.error_class, "in sink" in failure.traceback) == ("RecursionError", True)
    assert len(failure.traceback) <= TRACEBACK_LIMIT


def test_an_error_that_was_never_raised_has_words_and_a_fingerprint():
    failure = _described(OSError("disk"))
    assert failure.traceback == "Traceback (most recent call last):\nOSError: disk\n"
    assert failure.fingerprint


# Errors that led to errors


def test_a_chain_begins_with_the_oldest_error():
    oldest = _raised(KeyError("first"))
    text = traceback_of(_raised(ValueError("third"), _raised(OSError("second"), oldest)))
    parts = text.split(BETWEEN)
    assert [part.rstrip("\n").rpartition("\n")[2] for part in parts] == [
        "KeyError: 'first'",
        "OSError: second",
        "ValueError: third",
    ]


def test_an_error_met_while_another_was_handled_is_part_of_the_chain():
    with pytest.raises(ValueError, match="second") as caught:
        try:
            raise OSError("first")
        except OSError:
            raise ValueError("second")  # noqa: B904 - the implicit chain is what is tested
    assert "OSError: first" in traceback_of(caught.value)


def test_an_error_raised_from_none_stands_alone():
    with pytest.raises(ValueError, match="second") as caught:
        try:
            raise OSError("first")
        except OSError:
            raise ValueError("second") from None
    assert "first" not in traceback_of(caught.value)


def test_a_chain_without_an_end_has_one():
    one, other = _raised(ValueError("one")), _raised(ValueError("other"))
    one.__cause__, other.__cause__ = other, one
    assert traceback_of(one).count(BETWEEN) == 9


def test_of_a_long_chain_the_newest_errors_are_kept():
    error = None
    for number in range(15):
        error = _raised(ValueError(f"number {number}"), error)
    text = traceback_of(error)
    assert text.endswith("ValueError: number 14\n")
    assert "number 5\n" in text
    assert "number 4\n" not in text


def test_the_members_of_a_group_are_named():
    text = traceback_of(_raised(ExceptionGroup("two failed", [OSError("disk"), ValueError("words")])))
    assert text.endswith(
        "ExceptionGroup: two failed (2 sub-exceptions)\n  with OSError: disk\n  with ValueError: words\n"
    )


def test_of_a_large_group_some_members_are_named():
    group = BaseExceptionGroup("many failed", [SystemExit(number) for number in range(50)])
    assert traceback_of(_raised(group)).count("  with SystemExit: ") == 10


# Nothing that is secret


def _invalid():
    with pytest.raises(ValidationError) as caught:
        Order.model_validate({"card": {"number": SECRET}, "amount": SECRET})
    return caught.value


def test_of_a_pydantic_error_the_fields_are_kept_and_not_the_values():
    failure = _described(_invalid())
    assert failure.error_class.endswith("ValidationError")
    assert failure.message == "2 validation errors for Order\ncard: string_type\namount: int_parsing"
    assert SECRET not in failure.traceback


@pytest.mark.parametrize(
    "around",
    [
        pytest.param(lambda error: _raised(RuntimeError("no order"), error), id="a chain"),
        pytest.param(lambda error: _raised(ExceptionGroup("no orders", [error])), id="a group"),
    ],
)
def test_a_pydantic_error_within_others_shows_no_values(around):
    failure = _described(around(_invalid()))
    assert SECRET not in failure.message + failure.traceback
    assert "amount: int_parsing" in failure.traceback


@pytest.mark.parametrize(
    "payload",
    [
        {"api_key": SECRET},
        {"user": "ada", "account": {"password": SECRET}},
        {"headers": [{"name": "Authorization", "value": SECRET}]},
        {"argv": ["tool", "--token", SECRET]},
        {"tokens": [SECRET, "k8-none-such"]},
    ],
)
def test_the_payloads_secrets_are_taken_out(payload):
    cause = _raised(KeyError(SECRET))
    error = _raised(ConnectionError(f"the server refused {SECRET}!"), cause)
    failure = _described(error, payload=json.dumps(payload))
    assert failure.message == f"the server refused {REDACTED}!"
    assert SECRET not in failure.traceback
    assert failure.traceback.count(REDACTED) == 2


LETTERS = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))  # none of them twice


@pytest.mark.parametrize("length", [20, 300, 4_000, 6_000, 20_000])
@pytest.mark.parametrize("before", [0, 1_000, MESSAGE_LIMIT - 10, MESSAGE_LIMIT, MESSAGE_LIMIT + 3_990])
@pytest.mark.parametrize("shape", ["{}", "password={}!", "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----"])
def test_of_a_secret_that_is_cut_in_two_neither_half_is_kept(shape, before, length):
    secret = LETTERS[:length]
    words = "." * before + shape.format(secret) + "," * 100_000
    payload = json.dumps({"token": secret if shape == "{}" else ""}, ensure_ascii=False)
    error = _raised(_noted(ValueError(words), words), _raised(KeyError(words)))
    failure = _described(error, payload=payload)
    assert not set(LETTERS) & set(failure.message + failure.traceback)
    assert failure.message.startswith("." * min(before, MESSAGE_LIMIT - 400))


def test_of_two_long_secrets_side_by_side_nothing_is_kept():
    secrets = [LETTERS[:5_000], LETTERS[5_000:15_000]]
    failure = _described(_raised(ValueError("".join(secrets) + "," * 90_000)), payload=json.dumps({"tokens": secrets}))
    assert failure.message.startswith(REDACTED * 2)
    assert not set(LETTERS) & set(failure.message + failure.traceback)


def test_a_groups_members_lose_the_payloads_secrets_too():
    error = _raised(ExceptionGroup("failed", [OSError(f"no {SECRET}")]))
    assert SECRET not in _described(error, payload=json.dumps({"token": SECRET})).traceback


@given(secret=st.text(min_size=4, max_size=30), before=st.text("xyz ", max_size=9), after=st.text("xyz ", max_size=9))
def test_no_secret_of_the_payload_survives(secret, before, after):
    words = f"{before}{secret}{after}"
    failure = _described(_raised(ValueError(words)), payload=json.dumps({"password": secret}))
    assert secret in REDACTED or secret not in failure.message
    assert REDACTED in failure.message


def test_what_looks_like_a_secret_is_taken_out_whatever_the_payload():
    failure = _described(_raised(OSError("postgres://ada:hunter2@db/shop, password=hunter2")))
    assert "hunter2" not in failure.message + failure.traceback


def test_what_is_no_secret_stays():
    failure = _described(
        _raised(OSError("no image 4711")), payload=json.dumps({"image_id": "4711", "token_id": "image"})
    )
    assert failure.message == "no image 4711"


# What was said on purpose


@pytest.mark.parametrize(
    "error",
    [Retry(5, "later"), Snooze(5), Discard("no such user"), Cancel(), PayloadInvalid("bad"), PayloadTooNew("new")],
    ids=lambda error: type(error).__name__,
)
def test_what_is_said_on_purpose_has_words_and_no_traceback(error):
    failure = _described(_raised(error))
    assert (failure.message, failure.traceback) == (str(error), "")


# Where it was


def charge(amount: int) -> None:
    _fail(amount)


def _fail(amount):
    raise ValueError(f"cannot charge {amount}")


def _of_handler(amount):
    """The error of a handler that this package calls."""
    kind = job_type(charge, None, options=Options(), policy=RetryPolicy(), aliases=(), version=1, upgraders=None)
    payload = json.dumps({"amount": amount})
    own = Assignment("01J", "charge", "default", payload, 1, 1, 3, 1, "me", None, None, None, None)
    with pytest.raises(ValueError, match="charge") as caught:
        kind.call(own)
    # Without the frame of this test, as where a worker calls.
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


def test_a_traceback_begins_with_the_handler():
    text = traceback_of(_of_handler(7))
    assert "registry.py" not in text
    assert text.index("in charge") < text.index("in _fail")


def test_a_traceback_that_is_all_ours_is_kept():
    with pytest.raises(Exception, match="whole number") as caught:
        Options(priority=11)
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert "options.py" in traceback_of(error)


# The fingerprint


@given(first=st.integers(), second=st.integers())
def test_numbers_play_no_part_in_a_fingerprint(first, second):
    assert _fingerprint(_of_handler(first)) == _fingerprint(_of_handler(second))


def test_a_fingerprint_tells_errors_of_one_function_apart():
    kinds = [
        _fingerprint(_raised(OSError("disk"))),
        _fingerprint(_raised(OSError("disk")), "refund"),
        _fingerprint(_raised(ValueError("disk"))),
        _fingerprint(_raised(OSError("network"))),
        _fingerprint(_elsewhere(OSError("disk"))),
        _fingerprint(OSError("disk")),
    ]
    assert len(set(kinds)) == len(kinds)


def test_a_fingerprint_is_short_and_the_same_in_every_process():
    made = sha256("charge\0OSError\0\0cannot write “…”".encode()).hexdigest()[:32]
    assert _fingerprint(OSError("cannot write '/srv/7.pdf'")) == made
    assert len(_fingerprint(OSError(), "\ud800")) == 32


def _fingerprint(error, job_type="charge"):
    return failure_of(error, Ending.FAILED, job_type=job_type).fingerprint
