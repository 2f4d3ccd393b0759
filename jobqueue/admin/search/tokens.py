"""Words as they are typed: blanks part them, and quotes keep together what belongs together."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import NamedTuple

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_IN_QUOTES = re.compile(_QUOTED, re.DOTALL)
_WORD = re.compile(rf'(?:{_QUOTED}|[^\s"])+', re.DOTALL)
_HEAD = re.compile(rf'((?:{_QUOTED}|[^":])+):', re.DOTALL)
_COMMA = re.compile(rf"({_QUOTED})|,", re.DOTALL)
_NEEDS_NO_QUOTES = re.compile(r'[^\s",\\]+')

_CONSTANTS = {"true": True, "false": False, "null": None}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")


class Word(NamedTuple):
    """What was typed, without its quotes, and whether it had any."""

    text: str
    quoted: bool


def words(text: str) -> list[str] | None:
    """Part a text into words as typed; None where a quotation mark is not closed."""
    return None if '"' in _WORD.sub("", text) else _WORD.findall(text)


def parted(word: str) -> tuple[str, str] | None:
    """Part a word at its first colon into a name and a value as typed; a word that begins with a quote has no name."""
    head = None if word.startswith('"') else _HEAD.match(word)
    return (head[1], word[head.end() :]) if head else None


def plain(typed: str) -> Word:
    """Take the quotes away."""
    return Word(_IN_QUOTES.sub(lambda found: _without_backslashes(found[0][1:-1]), typed), '"' in typed)


def items(typed: str) -> list[Word]:
    """Part a value at its commas."""
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


def scalar(word: Word) -> object:
    """Read a value of JSON: without quotes, what looks like a number, true, false or null is one."""
    if word.quoted:
        return word.text
    if word.text in _CONSTANTS:
        return _CONSTANTS[word.text]
    if _NUMBER.fullmatch(word.text) and isfinite(number := json.loads(word.text)):
        return number
    return word.text


def written_scalar(value: object) -> str:
    """Write a value of JSON so that ``scalar`` reads it."""
    if not isinstance(value, str):
        return json.dumps(value)
    return written(value) if scalar(Word(value, False)) == value else quoted(value)


def _without_backslashes(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
