"""Shorter periods and other constants, for the workers that tests start."""

from __future__ import annotations

from collections.abc import Mapping
from pydoc import locate
from typing import Any


def change(constants: Mapping[str, Any]) -> None:
    """Replace constants of modules and classes, by their dotted paths."""
    for path, value in constants.items():
        place, _, name = path.rpartition(".")
        setattr(locate(place), name, value)
