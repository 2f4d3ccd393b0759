"""Random rows: hostile values and noise in one or several columns of any table."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.attacks.drains import Forgery
from tests.attacks.hostile import COLUMNS, ENDLESS, STATES, TABLES, Text, field_name, row_of, values_for

JOBS = "job_queue"
#: How many rows of a round, and how many columns of a row, are forged.
ROWS, FORGED = (1, 1, 2, 4), (1, 1, 1, 2, 3)
_LETTERS = "ab 0{}[]\",:\\/'%\0\n\x1b\u202e\ud800\U0001f4a9é"


def every_single() -> list[tuple[str, str, str, str]]:
    """List each table, column, value and state there is, always in the same order, which has no order."""
    found = [
        (table, column, name, state)
        for table in TABLES
        for column in COLUMNS[table]
        for name in values_for(table, column)
        for state in (STATES if table == JOBS else ("",))
        if state != "failing" or column not in ENDLESS
    ]
    Random(0).shuffle(found)
    return found


def single(table: str, column: str, name: str, state: str) -> Forgery:
    """Make a row with one hostile value."""
    value = values_for(table, column)[name]
    return Forgery(table, {**row_of(table, state), column: value}, f"{column} = {name}", state)


def some(chance: Random) -> list[Forgery]:
    """Make rows that a round begins with."""
    return [_one(chance) for _ in range(chance.choice(ROWS))]


def _one(chance: Random) -> Forgery:
    table = JOBS if chance.random() < 0.8 else chance.choice(sorted(TABLES))
    state = chance.choice(list(STATES))
    row, names = row_of(table, state), []
    columns = [one for one in COLUMNS[table] if state != "failing" or one not in ENDLESS]
    for column in chance.sample(columns, min(chance.choice(FORGED), len(columns))):
        values = values_for(table, column)
        name = chance.choice([*values, *["noise"] * (len(values) // 2)])
        row[column] = values[name] if name in values else _noise(chance, table, column)
        names.append(f"{column} = {name}")
    return Forgery(table, row, ", ".join(names), state)


def _noise(chance: Random, table: str, column: str) -> Any:
    kind = TABLES[table]._meta.get_field(field_name(table, column)).get_internal_type()
    if kind == "JSONField":
        return json.dumps(_json(chance, 5))
    makers = [
        lambda: "".join(chance.choices(_LETTERS, k=chance.randrange(40))),
        lambda: Text(chance.randbytes(chance.randrange(20))),
        lambda: chance.randbytes(chance.randrange(20)),
        lambda: chance.randrange(-(2**63), 2**63) >> chance.randrange(64),
        lambda: chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300),
    ]
    return chance.choice(makers)()


def _json(chance: Random, depth: int) -> Any:
    kinds = ["null", "number", "digits", "text", "fraction"] + (["list", "object"] * 3 if depth else [])
    match chance.choice(kinds):
        case "list":
            return [_json(chance, depth - 1) for _ in range(chance.randrange(4))]
        case "object":
            keys = ["x", "percent", "first", "payload", "language", "traceparent", "password", "1", "", "\ud800", "\0"]
            return {chance.choice(keys): _json(chance, depth - 1) for _ in range(chance.randrange(4))}
        case "number":
            return chance.randrange(-(2**70), 2**70) >> chance.randrange(70)
        case "digits":
            return 10 ** chance.randrange(4_000)
        case "text":
            return "".join(chance.choices(_LETTERS, k=chance.randrange(20)))
        case "fraction":
            return chance.choice([0.5, -0.0, 1e308, float("inf"), float("nan")])
    return chance.choice([None, True, False])
