"""The words of a query, separated by spaces, with quotes around those that contain spaces."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import NamedTuple

from jobqueue.records import LARGEST_SOUGHT, Range

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_IN_QUOTES = re.compile(_QUOTED, re.DOTALL)
_WORD = re.compile(rf'(?:{_QUOTED}|[^\s"])+', re.DOTALL)
_HEAD = re.compile(rf'((?:{_QUOTED}|[^":])+):', re.DOTALL)
_COMMA = re.compile(rf"({_QUOTED})|,", re.DOTALL)
_NEEDS_NO_QUOTES = re.compile(r'[^\s",\\]+')

#: Between the ends of a range.
TO = ".."
_CONSTANTS = {"true": True, "false": False, "null": None}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")


class Token(NamedTuple):
    """A text without its quotes, and whether it had any."""

    text: str
    quoted: bool


def words(text: str) -> list[str] | None:
    """Split a text into words, quotes included; None if a quotation mark isn't closed."""
    return None if '"' in _WORD.sub("", text) else _WORD.findall(text)


def parted(word: str) -> tuple[str, str] | None:
    """Split a word at its first colon into name and value. A word that begins with a quote has no name."""
    head = None if word.startswith('"') else _HEAD.match(word)
    return (head[1], word[head.end() :]) if head else None


def plain(typed: str) -> Token:
    """Remove the quotes."""
    return Token(_IN_QUOTES.sub(lambda found: _without_backslashes(found[0][1:-1]), typed), '"' in typed)


def items(typed: str) -> list[Token]:
    """Split a value at its commas."""
    ends = [found.start() for found in _COMMA.finditer(typed) if found[1] is None]
    starts = [0, *(end + 1 for end in ends)]
    return [plain(typed[start:end]) for start, end in zip(starts, [*ends, len(typed)], strict=True)]


def written(text: str) -> str:
    """Write a text as one word."""
    return text if _NEEDS_NO_QUOTES.fullmatch(text) else quoted(text)


def quoted(text: str) -> str:
    """Write a text in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def scalar(word: Token) -> object:
    """Read a JSON scalar. Without quotes, numbers, true, false and null are not text."""
    if word.quoted:
        return word.text
    if word.text in _CONSTANTS:
        return _CONSTANTS[word.text]
    if _NUMBER.fullmatch(word.text) and isfinite(number := json.loads(word.text)):
        return number
    return word.text


def written_scalar(value: object) -> str:
    """Write a JSON scalar; ``scalar`` reads the same value."""
    if not isinstance(value, str):
        return json.dumps(value)
    return written(value) if scalar(Token(value, False)) == value else quoted(value)


def written_range(numbers: Range) -> str:
    """Write a range; ``values.read_range`` reads the same."""
    least, most = numbers
    if least == most:
        return str(least)
    return f"{least}{TO}{'' if most == LARGEST_SOUGHT else most}"


def _without_backslashes(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
