"""A bounded reader for JSON that other programs may have written.

A database accepts JSON that Python can't read: text nested so deeply that the C decoder overruns its stack if a library
has raised the recursion limit, or numbers of thousands of digits. All such text is read here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from json import JSONDecoder
from math import isinf
from typing import Any, NoReturn

#: Levels of nesting: pydantic's limit, and few enough for recursive code.
DEEPEST = 200
#: Characters. The settings for sizes allow at most as many bytes.
LONGEST = 64 * 1024 * 1024
#: Digits of one number: Python's default limit, which a library may lift. Reading takes quadratic time.
MOST_DIGITS = 4_300

#: A recursion limit at which the decoder's C stack can't overflow.
_SAFE_RECURSION = 3_000
#: Removing this many levels costs as much as counting one.
_QUICK_LEVELS = 8
_STEPS = {"[": 1, "]": -1}
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]++")
#: Numbers that may be too large for a float. Python would read them as infinity, which JSON doesn't have.
_MAY_BE_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|(?<![0-9])[0-9]{309}")
_MANY_DIGITS = re.compile(rf"(?<![0-9])[0-9]{{{MOST_DIGITS + 1}}}")


class Unreadable(str):
    """A placeholder for JSON that can't be read: a text that says ``why``, with the stored ``text``."""

    __slots__ = ("text", "why")
    text: str
    why: str

    def __new__(cls, why: str, text: str) -> Unreadable:
        made = super().__new__(cls, f"(unreadable: {why})")
        made.why, made.text = why, text
        return made


def obstacle(text: str, *, makes_numbers: bool = True) -> str:
    """Return why a text must not reach a decoder, or an empty string. Without ``makes_numbers``, digits don't count."""
    if len(text) > LONGEST:
        return f"its {len(text):,} characters are more than {LONGEST:,}"
    return _excess(text, makes_numbers=makes_numbers)


def _excess(text: str, *, makes_numbers: bool) -> str:
    """Return which bound other than its length a text exceeds, or an empty string."""
    # These two quick scans let nearly all texts pass.
    may_be_deep = text.count("[") + text.count("{") > DEEPEST
    may_be_long = makes_numbers and len(text) > MOST_DIGITS and _MANY_DIGITS.search(text)
    if not (may_be_deep or may_be_long):
        return ""
    bare = _STRING.sub('""', text)
    if may_be_long and _MANY_DIGITS.search(bare):
        return f"it has a number of more than {MOST_DIGITS:,} digits"
    return f"it is nested more than {DEEPEST} levels deep" if _is_deep(bare) else ""


def read(text: object, numbers: Callable[[str], Any] | None = None) -> Any:
    """Decode JSON text, or return ``Unreadable``. ``numbers`` converts the text of each number."""
    if not isinstance(text, str):
        return Unreadable("it is not text", repr(text))
    try:
        return decoded(text, numbers)
    except ValueError as error:
        return Unreadable(str(error), text)


def decoded(text: str, numbers: Callable[[str], Any] | None = None) -> Any:
    """Decode JSON text. Raises ValueError, which says why, if it isn't JSON or exceeds the bounds."""
    if why := obstacle(text, makes_numbers=numbers is None):
        raise ValueError(why)
    return _decoded(text, numbers)


def decoded_quickly(text: str) -> Any:
    """Decode JSON text of any length. It is scanned first only if Python's own limits were lifted."""
    is_guarded = sys.getrecursionlimit() <= _SAFE_RECURSION and 0 < sys.get_int_max_str_digits() <= MOST_DIGITS
    if not is_guarded and (why := _excess(text, makes_numbers=True)):
        raise ValueError(why)
    return _decoded(text, None)


def _decoded(text: str, numbers: Callable[[str], Any] | None) -> Any:
    try:
        return _decoder(numbers, numbers is None and bool(_MAY_BE_HUGE.search(text))).decode(text)
    except ValueError as error:  # also a digit limit that is lower than ours
        raise ValueError(f"it is not JSON: {error}") from error
    except RecursionError as error:  # on a stack that was nearly used up
        raise ValueError("it is nested too deeply") from error


@cache
def _decoder(numbers: Callable[[str], Any] | None, may_be_huge: bool) -> JSONDecoder:
    if numbers is None:
        return JSONDecoder(parse_float=_finite if may_be_huge else None, parse_constant=_refused)
    return JSONDecoder(parse_int=numbers, parse_float=numbers, parse_constant=numbers)


def _finite(text: str) -> float:
    if isinf(number := float(text)):
        raise ValueError("a number is more than a float holds")
    return number


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"it has {constant}")


def _is_deep(bare: str) -> bool:
    brackets = _NO_BRACKET.sub("", bare).replace("{", "[").replace("}", "]")
    # Most JSON is broad, not deep: removing a few levels of pairs from the inside leaves little to count.
    for _level in range(_QUICK_LEVELS):
        brackets = brackets.replace("[]", "")
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > DEEPEST - _QUICK_LEVELS
