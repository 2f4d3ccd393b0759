"""Tables as text: aligned for a terminal, or tab-separated for a program."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.observe.terminal_safe import harmless

GAP = 2
NARROWEST = 8


def cell(text: str) -> str:
    """Put a text on one line, without control characters."""
    return harmless(" ".join(text.split()))


def separated(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows with tabs between the cells."""
    return ["\t".join(map(cell, row)) for row in rows]


def aligned(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Align the columns. The widest ones are cut until all fit the width.

    The first column is cut last: it holds the id, which must be complete to be used.
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
