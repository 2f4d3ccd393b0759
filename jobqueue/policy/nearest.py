"""The nearest right word to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """Ask whether the nearest known word was meant; where none is near, say something else, or list those there are."""
    words = sorted(known)
    folded = {one.lower(): one for one in words}
    nearest = get_close_matches(str(word).lower(), folded, n=1, cutoff=0.5)
    if nearest:
        return f"Did you mean {folded[nearest[0]]!r}?"
    return f"There are: {', '.join(words) or 'none'}." if otherwise is None else otherwise
