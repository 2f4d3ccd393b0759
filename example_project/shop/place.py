"""The demo's database: a SQLite file of its own, or the Postgres database EXAMPLE_POSTGRES."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

BASE: Path = settings.BASE_DIR
DEFAULT = BASE / "demo.sqlite3"


@dataclass(frozen=True)
class Place:
    """A database, and the environment variable that selects it for the example project's commands."""

    words: str
    variable: str
    value: str

    def command(self, *words: str) -> str:
        """Return the shell command that runs a management command on this database, from the current folder."""
        value = self.value if self.variable == "EXAMPLE_POSTGRES" else _near(Path(self.value))
        line = [_near(Path(sys.executable)), _near(BASE / "manage.py"), *words]
        return f"{self.variable}={shlex.quote(value)} {shlex.join(line)}"


def settle(given: str | None) -> Place:
    """Choose the database for this process and its children."""
    name = os.environ.get("EXAMPLE_POSTGRES")
    if name and given:
        raise CommandError("EXAMPLE_POSTGRES names the database already; unset it, or leave --database out.")
    if name:
        return Place(f"{name} (Postgres)", "EXAMPLE_POSTGRES", name)
    path = Path(given).absolute() if given else DEFAULT
    if not path.parent.is_dir():
        raise CommandError(f"There is no folder {path.parent} for the database.")
    connections["default"].close()
    connections.settings["default"]["NAME"] = str(path)
    os.environ["EXAMPLE_SQLITE"] = str(path)
    return Place(f"{_near(path)} (SQLite)", "EXAMPLE_SQLITE", str(path))


def _near(path: Path) -> str:
    """Return a path relative to the current folder if it is inside."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
