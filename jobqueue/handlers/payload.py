"""Payloads: validation by pydantic, and their form as JSON text in the table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from jobqueue import conf, foreign_json
from jobqueue.errors import PayloadInvalid, PayloadRefused, PayloadTooNew, PayloadUnfit
from jobqueue.policy.redaction import redact_text, secret_values

P = TypeVar("P")
Upgrader = Callable[[dict[str, Any]], dict[str, Any]]

# What JSON may contain but jsonb can't store: NUL, and half of a surrogate pair.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: The settings that limit sizes. Progress is read like a result.
_SIZES = {"payload": "MAX_PAYLOAD_BYTES", "result": "MAX_RESULT_BYTES", "progress": "MAX_RESULT_BYTES"}
_MOST_COMPLAINTS = 20
_JSON = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


class PayloadType(Generic[P]):
    """The form of one job type's payloads, its version, and the upgraders from older versions."""

    def __init__(self, form: type[P], version: int = 1, upgraders: Mapping[int, Upgrader] | None = None) -> None:
        self.version = version
        self.upgraders = dict(upgraders or {})
        self._adapter: TypeAdapter[P] = TypeAdapter(form)
        self._fields = getattr(form, "model_fields", {})

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the values in a payload, if the form declares them."""
        return tuple(field.alias or name for name, field in self._fields.items())

    def dump(self, value: object) -> str:
        """Validate a payload and return it as JSON.

        Raises pydantic's ValidationError for a payload that doesn't fit. Raises PayloadRefused for one that is too
        large, or that JSON would change. JSON changes NaN, masked secrets and keys that aren't strings, and, in fields
        without a type, bytes and tuples.
        """
        payload = self._adapter.validate_python(value)
        return stored(payload, self._adapter, self._adapter.validate_json, "payload", PayloadRefused)

    def dump_edited(self, data: object) -> str:
        """Validate JSON data from a form, and return it as it is stored.

        Raises PayloadUnfit, which says what doesn't fit and where, and PayloadRefused like ``dump``.
        """
        text = _encode(data, "payload", PayloadRefused)
        try:
            return self.dump(self._adapter.validate_json(text))
        except PayloadRefused:
            raise
        except ValidationError as error:
            raise PayloadUnfit(_in_words(error, secret_values(data))) from None
        except Exception as error:  # a validator failed on the edited data
            raise PayloadUnfit([("payload", f"its validation raised {type(error).__name__}")]) from error

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of what a person may write, or an empty one for a form that has none."""
        try:
            return self._adapter.json_schema(by_alias=True)
        except PydanticUserError:  # a type of the project's own without a schema
            return {}

    def load(self, text: str, version: int) -> P:
        """Parse a stored payload, and upgrade it first if it has an older version.

        Raises PayloadInvalid, which contains no values of the payload, and PayloadTooNew for a newer version.
        """
        try:
            return self._adapter.validate_json(self.upgraded(text, version))
        except ValidationError as error:
            complaints = _complaints(error, "payload", self._fields)
            raise PayloadInvalid(f"The stored payload does not validate:{complaints}") from None

    def upgraded(self, text: str, version: int) -> str:
        """Upgrade a stored payload to the current version, unvalidated. Raises PayloadInvalid and PayloadTooNew."""
        if version > self.version:
            raise PayloadTooNew(
                f"The payload has version {version}, but this release reads up to version {self.version}; "
                f"a worker of the newer release can run the job."
            )
        if version == self.version:
            return text
        # A row of another program may have any version, so missing steps are searched one by one, never listed.
        missing = next((step for step in range(version, self.version) if step not in self.upgraders), None)
        if missing is not None:
            raise PayloadInvalid(f"There is no upgrader from payload version {missing}.")
        data = foreign_json.read(text)
        if isinstance(data, foreign_json.Unreadable):
            raise PayloadInvalid(f"The stored payload cannot be read: {data.why}.")
        try:
            for step in range(version, self.version):
                data = self.upgraders[step](data)
            return json.dumps(data)
        except Exception as error:  # an upgrader that fails would fail again
            raise PayloadInvalid(f"The upgrade from payload version {version} raised {type(error).__name__}.") from None


def stored(
    value: object,
    adapter: TypeAdapter[Any],
    read: Callable[[str], object],
    what: str,
    refusal: type[Exception],
) -> str:
    """Return a value as JSON that ``read`` turns into the same value. Refuse a value that JSON would change.

    This is the one rule for payloads and results.
    """
    try:
        data = adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
    except ValueError as error:  # pydantic's own PydanticSerializationError is one
        raise refusal(f"The {what} cannot be written as JSON: {error}") from error
    text = _encode(data, what, refusal)
    try:
        back = read(text)
    except ValidationError as error:
        fields = getattr(type(value), "model_fields", {})
        raise refusal(f"The {what} cannot be read back from JSON:{_complaints(error, what, fields)}") from None
    if back != value:
        raise refusal(
            f"The {what} is not the same after JSON: {_first_difference(value, back, what)}. "
            f"Use plain JSON data there, or declare its type in a pydantic model or in the signature."
        )
    return text


def _complaints(error: ValidationError, what: str, fields: Container[object]) -> str:
    """Return what is wrong in which field, without values. Keys of a dict count as values."""
    wrong = error.errors(include_input=False, include_url=False, include_context=False)
    places = [str(one["loc"][0]) if one["loc"] and one["loc"][0] in fields else what for one in wrong]
    told = [f"\n  {place}: {one['type']}" for place, one in zip(places, wrong, strict=True)]
    return "".join(told[:_MOST_COMPLAINTS])


def _in_words(error: ValidationError, secrets: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the field and the message of each error. Input values, and secrets that a validator quotes, are removed."""
    secrets = tuple(secrets)
    for one in error.errors(include_input=False, include_url=False, include_context=False)[:_MOST_COMPLAINTS]:
        place = ".".join(map(str, one["loc"])) or "payload"
        yield redact_text(place, secrets), redact_text(one["msg"], secrets)


def dump_report(value: dict[str, Any]) -> str:
    """Return a progress report as JSON. Reports are for people, so dates become text. Raises PayloadRefused."""
    try:
        data = to_jsonable_python(value)
    except ValueError as error:
        raise PayloadRefused(f"The progress cannot be written as JSON: {error}") from error
    return _encode(data, "progress", PayloadRefused)


def _encode(data: Any, what: str, refusal: type[Exception]) -> str:
    try:
        text = _JSON.encode(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise refusal(f"The {what} cannot be written as JSON{_not_a_number(data)}: {error}.") from error
    check_stored(text, what, refusal)
    return text


def check_stored(text: str, what: str, refusal: type[Exception] = PayloadRefused) -> None:
    """Raise for JSON text that a database can't store, or that another process might not read.

    Limits of this process don't count: a handler or a library may have lifted them.
    """
    if why := foreign_json.obstacle(text):
        raise refusal(f"The {what} cannot be read back from JSON: {why}.")
    if "\\u0000" in text and _NUL.search(text):
        raise refusal(f"The {what} contains a NUL character, which no jsonb column can store.")
    if not text.isascii() and _SURROGATE.search(text):
        raise refusal(f"The {what} contains half of a surrogate pair, which is not text.")
    setting = _SIZES[what]
    size, limit = len(text.encode()), conf.get(setting)
    if size > limit:
        raise refusal(
            f"The {what} takes {size:,} bytes; the limit JOBQUEUE[{setting!r}] is {limit:,}. "
            f"Store the data elsewhere and pass a reference to it."
        )


def _not_a_number(data: Any, path: str = "", depth: int = 0) -> str:
    """Return the place of the first NaN or infinity, or an empty string."""
    if isinstance(data, float) and not isfinite(data):
        return f" at {path.lstrip('.') or 'its top'}"
    if depth > 50:
        return ""
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return next((found for key, value in children if (found := _not_a_number(value, f"{path}.{key}", depth + 1))), "")


def _first_difference(sent: Any, back: Any, path: str) -> str:
    """Describe the first place where a value came back changed."""
    if isinstance(sent, BaseModel) and isinstance(back, BaseModel):
        sent, back = dict(sent), dict(back)
    if isinstance(sent, dict) and isinstance(back, dict):
        for key in sent:
            if not isinstance(key, str):
                return f"{path} has the key {key!a}, which is not text"
            if key not in back or sent[key] != back[key]:
                return _first_difference(sent[key], back.get(key), f"{path}.{ascii(key)[1:-1]}")
    if isinstance(sent, list) and isinstance(back, list):
        for place, (one, other) in enumerate(zip(sent, back, strict=False)):
            if one != other:
                return _first_difference(one, other, f"{path}.{place}")
    kinds = type(sent).__name__, type(back).__name__
    return f"{path} changes" if kinds[0] == kinds[1] else f"{path} is {kinds[0]} and comes back as {kinds[1]}"
