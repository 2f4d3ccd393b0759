"""JSON that another program may have written: read within bounds, and never with an error.

A database takes JSON that Python can't read: nested so deeply that the C decoder overruns its stack where a library has
raised the recursion limit, or with numbers of thousands of digits. All such text is read here.
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

#: Levels of nesting: as many as pydantic reads, and few enough for code that calls itself for each of them.
DEEPEST = 200
#: Characters; as many bytes are what the settings of sizes allow at most.
LONGEST = 64 * 1024 * 1024
#: Digits of one number: Python's own limit, which a library may lift. Reading more takes quadratic time.
MOST_DIGITS = 4_300

#: The decoder's C stack holds as many levels, and many more.
_SAFE_RECURSION = 3_000
#: As many levels are taken away at the price of counting one.
_QUICK_LEVELS = 8
_STEPS = {"[": 1, "]": -1}
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]++")
#: What may be more than a float holds. Python would make an infinity of it, which is no JSON.
_MAY_BE_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|(?<![0-9])[0-9]{309}")
_MANY_DIGITS = re.compile(rf"(?<![0-9])[0-9]{{{MOST_DIGITS + 1}}}")


class Unreadable(str):
    """What stands for JSON that isn't read: words that say ``why``, beside the ``text`` that was stored."""

    __slots__ = ("text", "why")
    text: str
    why: str

    def __new__(cls, why: str, text: str) -> Unreadable:
        made = super().__new__(cls, f"(unreadable: {why})")
        made.why, made.text = why, text
        return made


def obstacle(text: str, *, makes_numbers: bool = True) -> str:
    """Say why a text is not to be given to a decoder, or to one that leaves numbers as they are written."""
    if len(text) > LONGEST:
        return f"its {len(text):,} characters are more than {LONGEST:,}"
    return _excess(text, makes_numbers=makes_numbers)


def _excess(text: str, *, makes_numbers: bool) -> str:
    """Say what there is too much of in a text, beside its length."""
    # Nearly all there is passes by these, at the price of two quick looks through the text.
    may_be_deep = text.count("[") + text.count("{") > DEEPEST
    may_be_long = makes_numbers and len(text) > MOST_DIGITS and _MANY_DIGITS.search(text)
    if not (may_be_deep or may_be_long):
        return ""
    bare = _STRING.sub('""', text)
    if may_be_long and _MANY_DIGITS.search(bare):
        return f"it has a number of more than {MOST_DIGITS:,} digits"
    return f"it is nested more than {DEEPEST} levels deep" if _is_deep(bare) else ""


def read(text: object, numbers: Callable[[str], Any] | None = None) -> Any:
    """Decode JSON text, or make it ``Unreadable``; ``numbers`` makes something else of each number as it is written."""
    if not isinstance(text, str):
        return Unreadable("it is no text", repr(text))
    try:
        return decoded(text, numbers)
    except ValueError as error:
        return Unreadable(str(error), text)


def decoded(text: str, numbers: Callable[[str], Any] | None = None) -> Any:
    """Decode JSON text. Raises ValueError, which says why, for what is not JSON or goes beyond the bounds."""
    if why := obstacle(text, makes_numbers=numbers is None):
        raise ValueError(why)
    return _decoded(text, numbers)


def decoded_quickly(text: str) -> Any:
    """Decode JSON text of any length; it is only looked through where Python's own limits are no guard."""
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
    # Most JSON is broad and not deep: a few levels of pairs, taken away from the inside, leave little to count.
    for _level in range(_QUICK_LEVELS):
        brackets = brackets.replace("[]", "")
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > DEEPEST - _QUICK_LEVELS
