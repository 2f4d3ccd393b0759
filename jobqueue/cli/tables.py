"""Rows as text: aligned to fit a terminal, or tab-separated for a program. Nothing in a cell can steer a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.observe.steering import harmless

GAP = 2
NARROWEST = 8


def cell(text: str) -> str:
    """Put a text into one line."""
    return harmless(" ".join(text.split()))


def separated(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows with a tab between the cells."""
    return ["\t".join(map(cell, row)) for row in rows]


def aligned(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Pad the cells of each row so that columns stand in line. The widest give way until all fit the width.

    The first column stays whole, for it names the row: an id that is cut cannot be typed.
    """
    cells = [[cell(text) for text in row] for row in rows]
    widths = _fitting([max(map(len, column)) for column in zip(*cells, strict=True)], width)
    return [[_padded(text, size) for text, size in zip(row, widths, strict=True)] for row in cells]


def _fitting(widths: list[int], width: int) -> list[int]:
    left = width - GAP * (len(widths) - 1)
    widths = [min(one, max(left, NARROWEST)) for one in widths]
    first, rest = widths[:1], widths[1:]
    while sum(first + rest) > left and rest and max(rest) > NARROWEST:
        rest[rest.index(max(rest))] -= 1
    return first + rest


def _padded(text: str, size: int) -> str:
    return (text if len(text) <= size else text[: max(size - 1, 0)] + "…").ljust(size)
