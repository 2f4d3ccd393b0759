"""The lookup of a value at a dotted path of a payload, in the SQL of each database."""

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
    """The condition that a JSON column has a value at a path. Path and value are parameters, so any text is safe."""

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
            # json_extract() alone doesn't distinguish true from 1, and "true" from true, so the type is compared too.
            kinds, compared = _in_sqlite(value)
            extract = "" if compared is None else f" AND json_extract({column}, %s) = %s"
            terms.append(f"(json_type({column}, %s) IN ({kinds}){extract})")
            params += [path] if compared is None else [path, path, compared]
        # The JSON may be nested too deeply for this SQLite: another program may use a release with a higher limit.
        return f"CASE WHEN json_valid({column}) THEN {' OR '.join(terms) or '1 = 0'} ELSE 0 END", tuple(params)


def _in_sqlite(value: object) -> tuple[str, object]:
    """Return SQLite's types for a JSON value, and the value to compare with, or ``None`` if the type is enough."""
    if value is None or isinstance(value, bool):
        return f"'{json.dumps(value)}'", None
    if isinstance(value, (int, float)):
        # SQLite reads integers of more than 64 bits as floats.
        return "'integer', 'real'", value if isinstance(value, float) or abs(value) <= _LARGEST else float(value)
    return "'text'", value


def sqlite_paths(elements: list[str]) -> list[str]:
    """Return all forms of a path in SQLite. Digits may be an index or a key, and a key may be stored escaped."""
    return ["$" + "".join(steps) for steps in product(*map(_steps, elements))]


def _steps(element: str) -> list[str]:
    if '"' in element:  # SQLite has no way to write it
        return []
    keys = dict.fromkeys((element, json.dumps(element)[1:-1]))
    places = [f"[{element}]"] if is_place(element) else []
    return [*places, *(f'."{key}"' for key in keys)]
