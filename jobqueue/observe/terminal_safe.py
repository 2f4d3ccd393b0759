"""Texts that are safe for a terminal: without escape sequences, line breaks or bidirectional controls."""

from __future__ import annotations

import re

_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LINE_ENDS = re.compile(r"(?:\r\n|[\n\x0b\x0c\r\x85\u2028\u2029])+")


def harmless(text: str) -> str:
    """Replace characters that move a terminal's cursor or reverse text. Tabs and newlines stay."""
    return _STEERS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Make a text harmless, with spaces in place of line breaks."""
    return harmless(_LINE_ENDS.sub(" ", text))


def spelled_out(text: str) -> str:
    """Escape control characters in a JSON text, which keeps its meaning."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
