"""The screen of the live view, drawn with ``rich``. Only ``jobqueue top`` imports this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobqueue.cli.top.snapshot import QUEUES, RUNNING, WORKERS, Row, Snapshot
from jobqueue.observe.health import Level

_STYLES = {Level.OK: "", Level.NOTICE: "", Level.WARNING: "yellow", Level.ERROR: "bold red"}
#: The heads of columns with numbers or lengths.
_TO_THE_RIGHT = ("depth", "delayed", "running", "dead", "oldest", "busy", "seen", "for", "attempt")
#: How many findings are shown, and how many rows of each table at least.
_MOST_FINDINGS, _LEAST_ROWS = 4, 2
#: The rows of each table where the height doesn't matter.
_MOST_ROWS = 50
#: The lines of a table besides its rows: an empty line, the heads, and how many rows there are besides.
_FRAME = 3


class Screen:
    """Draws snapshots on a terminal, or as plain text."""

    def __init__(self, out: TextIO, *, width: int | None, coloured: bool) -> None:
        self._console = Console(
            file=out, width=width, no_color=not coloured, force_terminal=coloured or None, highlight=False, emoji=False
        )
        encoding = (getattr(out, "encoding", None) or "utf-8").lower()
        self._overflow = "ellipsis" if encoding.startswith("utf") else "crop"

    def once(self, seen: Snapshot) -> None:
        """Write one snapshot."""
        self._console.print(self.drawn(seen, None))

    def live(self, read: Callable[[], Snapshot], wait: Callable[[], object]) -> None:
        """Draw snapshots over each other, and ``wait`` in between, until that raises KeyboardInterrupt."""
        first = self.drawn(read(), self._console.height)
        with Live(first, console=self._console, screen=True, auto_refresh=False) as live:
            live.refresh()
            while True:
                wait()
                live.update(self.drawn(read(), self._console.height), refresh=True)

    def drawn(self, seen: Snapshot, height: int | None) -> RenderableType:
        """Return what shows a snapshot, in at most ``height`` lines."""
        style = _STYLES[seen.level]
        head = Text(f"{seen.level.word}  {seen.at}  {seen.summary}", style=style or "green")
        shown = seen.findings[:_MOST_FINDINGS]
        lines = [self._line(f"{level.word}: {text}", _STYLES[level]) for level, text in shown]
        tables = [(QUEUES, seen.queues), (WORKERS, seen.workers), (RUNNING, seen.running)]
        used = len(head.wrap(self._console, self._console.width)) + len(lines)
        rooms = _rooms([len(rows) for _heads, rows in tables], None if height is None else height - used)
        parts = [
            self._table(heads, rows, room) for (heads, rows), room in zip(tables, rooms, strict=True) if rows and room
        ]
        return Group(head, *lines, *parts)

    def _line(self, text: str, style: str) -> Text:
        return Text(text, style=style, no_wrap=True, overflow=self._overflow)  # type: ignore[arg-type]

    def _table(self, heads: Sequence[str], rows: Sequence[tuple[Level, Row]], room: int) -> RenderableType:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for place, head in enumerate(heads):
            table.add_column(
                head.upper(),
                no_wrap=True,
                overflow=self._overflow,  # type: ignore[arg-type]
                justify="right" if head in _TO_THE_RIGHT else "left",
                # An id must be complete to be used.
                min_width=max((len(row[0]) for _, row in rows[:room]), default=0) if head == "job" else None,
                ratio=None if place else 0,
            )
        for level, row in rows[:room]:
            table.add_row(*map(Text, row), style=_STYLES[level])
        more = len(rows) - room
        last = [self._line(f"and {more:,} more", "dim")] if more > 0 else []
        return Group(Text(""), table, *last)


def _rooms(numbers: Sequence[int], height: int | None) -> list[int]:
    """Share the lines of a screen among tables. Later tables get what earlier ones leave, and at least some rows."""
    if height is None:
        return [_MOST_ROWS] * len(numbers)
    rooms = []
    for place, number in enumerate(numbers):
        later = sum(min(one, _LEAST_ROWS) + _FRAME for one in numbers[place + 1 :] if one)
        room = max(min(number, height - later - _FRAME), 0) if number else 0
        is_last = not any(numbers[place + 1 :])
        room = room if is_last else min(room, max(_LEAST_ROWS, (height - later) // 2))
        rooms.append(room)
        height -= room + _FRAME if room else 0
    return rooms
