"""The lookup of a value at a dotted path of a payload, as each database spells it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Func
from django.db.models.sql.compiler import SQLCompiler

from jobqueue.records import is_place, stands_for

_LARGEST = 2**63 - 1


class Holds(Func):
    """The condition that a JSON column holds a value at a path. Both are parameters, so they may contain anything."""

    def __init__(self, column: str, path: str, value: object) -> None:
        super().__init__(column, output_field=BooleanField())
        self.elements = path.split(".")
        self.values = stands_for(value)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> tuple[str, list[Any]]:
        column, params = compiler.compile(self.source_expressions[0])
        values = ", ".join(["%s::jsonb"] * len(self.values))
        return f"({column} #> %s::text[]) IN ({values})", [*params, self.elements, *map(json.dumps, self.values)]

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any
    ) -> tuple[str, tuple[Any, ...]]:
        column, given = compiler.compile(self.source_expressions[0])
        terms, params = [], list[Any](given)
        for path, value in product(sqlite_paths(self.elements), self.values):
            # The type comes first: json_extract() alone takes true for 1, and "true" for true.
            kinds, compared = _in_sqlite(value)
            extract = "" if compared is None else f" AND json_extract({column}, %s) = %s"
            terms.append(f"(json_type({column}, %s) IN ({kinds}){extract})")
            params += [path] if compared is None else [path, path, compared]
        # Another program's SQLite may have accepted JSON that is too deep for this one.
        return f"CASE WHEN json_valid({column}) THEN {' OR '.join(terms) or '1 = 0'} ELSE 0 END", tuple(params)


def _in_sqlite(value: object) -> tuple[str, object]:
    """Return SQLite's types for a JSON value, and what it is compared with unless its type is enough."""
    if value is None or isinstance(value, bool):
        return f"'{json.dumps(value)}'", None
    if isinstance(value, (int, float)):
        # A number that is too large for 64 bits is a floating number there.
        return "'integer', 'real'", value if isinstance(value, float) or abs(value) <= _LARGEST else float(value)
    return "'text'", value


def sqlite_paths(elements: list[str]) -> list[str]:
    """Return a path as SQLite writes it. Digits may be a place or a key, and other letters may be stored escaped."""
    return ["$" + "".join(steps) for steps in product(*map(_steps, elements))]


def _steps(element: str) -> list[str]:
    if '"' in element:  # SQLite has no way to write it
        return []
    keys = dict.fromkeys((element, json.dumps(element)[1:-1]))
    places = [f"[{element}]"] if is_place(element) else []
    return [*places, *(f'."{key}"' for key in keys)]
