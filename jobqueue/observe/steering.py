"""What would steer a terminal, taken out of texts that somebody else wrote: escapes, line ends, turned writing."""

from __future__ import annotations

import re

_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LINE_ENDS = re.compile(r"(?:\r\n|[\n\x0b\x0c\r\x85\u2028\u2029])+")


def harmless(text: str) -> str:
    """Take out what would move a terminal's cursor or turn its text around; tabs and line ends stay."""
    return _STEERS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Make a text harmless and let it write no line of its own; its spaces stay."""
    return harmless(_LINE_ENDS.sub(" ", text))


def spelled_out(text: str) -> str:
    """Spell what steers a terminal as JSON does, for a text that is JSON: it reads the same as before."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
