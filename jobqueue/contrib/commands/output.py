"""The end of a command's output."""

from __future__ import annotations

import io
from collections import deque


class LastOutput(io.TextIOBase):
    """A stream that keeps the last bytes written to it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: deque[bytes] = deque()
        self._size = 0
        #: The total number of bytes written.
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
        """Return the end of the output, without NUL, which databases can't store in JSON."""
        return b"".join(self._parts)[-self._most :].decode("utf-8", "ignore").replace("\0", "")

    @property
    def left_out(self) -> int:
        """Return how many bytes were dropped."""
        return max(0, self.written - self._most)
