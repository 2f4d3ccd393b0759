"""A mistake in a setting."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A mistake in a setting: a sentence that names the place, and a hint."""

    sentence: str
    hint: str
