"""The console of a subcommand: data on stdout, messages on stderr; colours and aligned tables on a terminal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

from jobqueue.cli.exits import failure
from jobqueue.cli.tables import GAP, aligned, cell, separated
from jobqueue.observe.terminal_safe import harmless, one_line

Paint = Callable[[str], str]


class Console:
    """The two streams of a command, and how to write to them."""

    def __init__(self, out: OutputWrapper, err: OutputWrapper, style: Style, *, verbosity: int, as_json: bool) -> None:
        self.out, self.err, self.style = out, err, style
        self.verbosity = verbosity
        self.as_json = as_json

    def document(self, value: dict[str, Any]) -> None:
        """Write the one JSON document."""
        self.out.write(json.dumps(value, indent=2, allow_nan=False))

    def line(self, text: str = "", paint: Paint | None = None) -> None:
        """Write one line of data. Line breaks in the text are replaced."""
        self._write(one_line(text), paint)

    def block(self, text: str, paint: Paint | None = None) -> None:
        """Write data of several lines."""
        self._write(harmless(text), paint)

    def _write(self, text: str, paint: Paint | None) -> None:
        shown = self._encodable(text, self.out)
        self.out.write(paint(shown) if paint else shown)

    def say(self, text: str, paint: Paint | None = None) -> None:
        """Write a message to stderr, unless ``-v 0`` is given."""
        if self.verbosity:
            shown = self._encodable(cell(text), self.err)
            self.err.write(paint(shown) if paint else shown, lambda one: one)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], paints: Mapping[int, Paint] | None = None
    ) -> None:
        """Write a table; ``paints`` maps a row's number to its colour."""
        heads = [one.upper().replace("_", " ") for one in columns]
        if not self.out.isatty():
            for line in separated([columns, *rows]):
                self.out.write(self._encodable(line, self.out))
            return
        head, *body = aligned([heads, *rows], shutil.get_terminal_size().columns)
        gap = " " * GAP
        self.out.write(self.style.MIGRATE_HEADING(gap.join(head).rstrip()))
        for number, cells in enumerate(body):
            paint = (paints or {}).get(number, str)
            self.out.write(paint(self._encodable(gap.join(cells).rstrip(), self.out)))

    def progress(self, done: int, total: int) -> None:
        """Show progress on one line of a terminal."""
        if self.err.isatty() and self.verbosity:
            end = "\n" if done >= total else ""
            self.err.write(f"\r{done:,} of {total:,} jobs{end}", lambda one: one, ending="")
            self.err.flush()

    def agrees(self, question: str, source: TextIO | None = None) -> bool:
        """Ask for confirmation. Without a terminal, fail and name the option to use instead."""
        source = source or sys.stdin
        if not source.isatty():
            raise failure(f"{question} Nothing was changed: stdin is not a terminal. Use --yes to confirm.")
        self.err.write(f"{self._encodable(cell(question), self.err)} [y/N] ", lambda one: one, ending="")
        self.err.flush()
        return source.readline().strip().lower() in ("y", "yes")

    @staticmethod
    def _encodable(text: str, stream: OutputWrapper) -> str:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        return text.encode(encoding, "replace").decode(encoding)
