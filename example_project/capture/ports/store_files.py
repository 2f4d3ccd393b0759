"""A content-addressed store in a folder, with a file for each content, named by its address."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from example_project.capture.ports.store import cid_of


class FileStore:
    """The store at ``file:/a/folder``. Files are complete or absent, and survive a power failure."""

    def __init__(self, endpoint: str) -> None:
        self._folder = Path(endpoint.removeprefix("file:"))

    def has(self, cid: str) -> bool:
        """Return whether a content is stored."""
        return self._path(cid).exists()

    def get(self, cid: str) -> bytes:
        """Return a content."""
        return self._path(cid).read_bytes()

    def put(self, content: bytes) -> str:
        """Store a content, and return its address."""
        cid = cid_of(content)
        path = self._path(cid)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
        _sync_folder(path.parent)
        return cid

    def _path(self, cid: str) -> Path:
        """Return a path that spreads files over folders by the end of the address. All addresses begin alike."""
        if not (cid.isascii() and cid.isalnum()):
            raise ValueError("This is no address of a content.")
        return self._folder / cid[-3:-1] / cid


def _sync_folder(folder: Path) -> None:
    """Sync a file's name to disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
