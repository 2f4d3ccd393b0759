"""Hidden values in an edited payload. They never leave the server, and are kept unless replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from jobqueue.policy.redaction import REDACTED, redact_data

LONGEST_SHOWN = 300


class NotRestored(Exception):
    """It is unclear which hidden value is meant; the message names the place."""


def restored(written: Any, original: Any) -> Any:
    """Put the hidden values of a payload back into its edited, redacted form.

    Raises NotRestored if a hidden value was moved or is part of a change, or if it would become visible: under a
    name that isn't redacted, everybody could read it.
    """
    whole = _restored(written, redact_data(original), original, "")
    if not _same(redact_data(whole), redact_data(written)):
        raise NotRestored(
            gettext("A hidden value would become visible. Leave the value under its name, which hides it.")
        )
    return whole


def _restored(written: Any, shown: Any, original: Any, place: str) -> Any:
    if _same(written, shown):
        return original
    if isinstance(written, dict) and isinstance(shown, dict) and isinstance(original, dict):
        return {
            key: _restored(value, shown[key], original[key], _at(place, key))
            if key in shown
            else _fresh(value, _at(place, key))
            for key, value in written.items()
        }
    if isinstance(written, list) and isinstance(shown, list) and isinstance(original, list):
        return _restored_items(written, shown, original, place)
    return _fresh(written, place)


def _restored_items(written: list[Any], shown: list[Any], original: list[Any], place: str) -> list[Any]:
    """Restore a list. Items may be moved unchanged; a single item may be changed in place."""
    before, after = list(map(_canonical, shown)), list(map(_canonical, written))
    same_length = len(before) == len(after)
    changed = {index for index, text in enumerate(after) if not same_length or text != before[index]}
    alike: dict[str, list[Any]] = {}
    for text, value in zip(before, original, strict=True):
        alike.setdefault(text, []).append(value)

    def item(index: int, value: Any) -> Any:
        here, candidates = _at(place, index), alike.get(after[index], [])
        if REDACTED not in after[index]:
            return value
        if index not in changed:
            return original[index]
        if same_length and changed == {index}:
            return _restored(value, shown[index], original[index], here)
        if candidates and all(_same(one, candidates[0]) for one in candidates):
            return candidates[0]
        return _fresh(value, here)

    return [item(index, value) for index, value in enumerate(written)]


def _fresh(value: Any, place: str) -> Any:
    if REDACTED in json.dumps(value):
        told = gettext(
            "%(place)s contains %(redacted)s, but it is unclear which hidden value is meant. Write the value out."
        )
        raise NotRestored(told % {"place": place or gettext("The payload"), "redacted": REDACTED})
    return value


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where two payloads differ; ``None`` is an absent value."""

    place: str
    was: str | None
    will: str | None


def differences(old: Any, new: Any) -> list[Difference]:
    """List the changes by place. Hidden values are not shown, only that they changed."""
    return list(_differences(old, new, redact_data(old), redact_data(new), ""))


def _differences(old: Any, new: Any, was: Any, will: Any, place: str) -> Iterator[Difference]:
    if _same(old, new):
        return
    if all(isinstance(one, dict) for one in (old, new, was, will)):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in new:
                yield Difference(_at(place, key), _written(was[key]), None)
            elif key not in old:
                yield Difference(_at(place, key), None, _written(will[key]))
            else:
                yield from _differences(old[key], new[key], was[key], will[key], _at(place, key))
    elif all(isinstance(one, list) for one in (old, new, was, will)) and len(old) == len(new):
        for index, both in enumerate(zip(old, new, was, will, strict=True)):
            yield from _differences(*both, _at(place, index))
    elif _same(was, will):
        yield Difference(place, _written(was), gettext("another hidden value"))
    else:
        yield Difference(place, _written(was), _written(will))


def _same(one: Any, other: Any) -> bool:
    """Compare JSON values: 1 differs from true, and the order of keys doesn't matter."""
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _at(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return text.encode(errors="backslashreplace").decode()
