"""Files written by jobs: inside one folder, and complete or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.conf import settings

from jobqueue import Discard


def write(target: str, text: str) -> Path:
    """Write a text to a path below the results folder. A path outside it is refused without a retry."""
    folder = Path(settings.CHORES["RESULTS"]).resolve()
    path = (folder / target).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise Discard("The target's path leads out of the folder of results.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)
    return path.relative_to(folder)
