"""The facts of an enqueued task that no column of a job has. They are stored in the column ``context``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobqueue import foreign_json

#: The key in ``context`` that holds the facts.
KEY = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """The alias in ``TASKS``, how many arguments were given by position, the priority, and the earliest start."""

    alias: str = ""
    positional: int = 0
    priority: int = 0
    run_after: datetime | None = None

    @classmethod
    def of_context(cls, context: object) -> TaskFacts:
        """Return the facts from a decoded context. What another program wrote in a wrong form is ignored."""
        found = context.get(KEY) if isinstance(context, dict) else None
        if not isinstance(found, dict):
            return cls()
        alias = found.get("alias")
        return cls(
            alias=alias if isinstance(alias, str) else "",
            positional=_whole(found.get("args"), 0, 10_000),
            priority=_whole(found.get("priority"), -100, 100),
            run_after=_moment(found.get("run_after")),
        )

    @classmethod
    def of_text(cls, context: str | None) -> TaskFacts:
        """Return the facts from a stored context."""
        return cls.of_context(foreign_json.read(context)) if context else cls()

    def within(self, context: str | None) -> str:
        """Return a job's context as JSON text, with the facts added."""
        facts: dict[str, Any] = {"alias": self.alias}
        if self.positional:
            facts["args"] = self.positional
        if self.priority:
            facts["priority"] = self.priority
        if self.run_after is not None:
            facts["run_after"] = self.run_after.isoformat()
        return json.dumps({**(json.loads(context) if context else {}), KEY: facts})


def _whole(value: object, lowest: int, highest: int) -> int:
    return value if type(value) is int and lowest <= value <= highest else 0


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
