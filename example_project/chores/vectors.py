"""Texts as vectors without a model: hashed counts of words and pairs, so that similar texts are close."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from itertools import pairwise

SIZE = 128
Vector = list[float]
_WORD = re.compile(r"\w+")


class NoWords(ValueError):
    """A text without words has no vector."""


def embed(texts: Sequence[str]) -> list[Vector]:
    """Return a vector of length 1 for each text. Raises NoWords for the whole batch, like batch services do."""
    return [_embed(text) for text in texts]


def similarity(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def _embed(text: str) -> Vector:
    words = _WORD.findall(text.lower())
    if not words:
        raise NoWords("a text has no words")
    counts = [0.0] * SIZE
    for feature in [*words, *map(" ".join, pairwise(words))]:
        counts[int.from_bytes(hashlib.sha256(feature.encode()).digest()[:4], "big") % SIZE] += 1.0
    length = math.hypot(*counts)
    return [count / length for count in counts]
