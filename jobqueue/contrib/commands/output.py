"""What a command writes, as much of it as is kept: the end."""

from __future__ import annotations

import io
from collections import deque


class LastOutput(io.TextIOBase):
    """A stream that keeps its last bytes, however much is written to it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: deque[bytes] = deque()
        self._size = 0
        #: How many bytes were written in all.
        self.written = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        part = text.encode("utf-8", "replace")
        self.written += len(part)
        self._parts.append(part[-self._most :])
        self._size += len(self._parts[-1])
        while self._size - len(self._parts[0]) >= self._most:
            self._size -= len(self._parts.popleft())
        return len(text)

    @property
    def text(self) -> str:
        """The end of what was written; without NUL, which no database keeps in JSON."""
        return b"".join(self._parts)[-self._most :].decode("utf-8", "ignore").replace("\0", "")

    @property
    def left_out(self) -> int:
        """How many bytes came before that."""
        return max(0, self.written - self._most)
