"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """Suggest the nearest known word. If none is near, return ``otherwise``, or list the known words."""
    words = sorted(known)
    folded = {one.lower(): one for one in words}
    nearest = get_close_matches(str(word).lower(), folded, n=1, cutoff=0.5)
    if nearest:
        return f"Did you mean {folded[nearest[0]]!r}?"
    return f"Choose one of: {', '.join(words) or 'none'}." if otherwise is None else otherwise
