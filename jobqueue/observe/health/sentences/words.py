"""The parts that sentences about findings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import ngettext

from jobqueue.observe.health.finding import Finding
from jobqueue.observe.wording import Wording

#: How many of several names a sentence has.
NAMES_SHOWN = 3

Say = Callable[[Finding, Wording, datetime], str]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a cause: the sentence for one problem, the one for several, and what to do."""

    one: Say
    several: Say
    advice: Any = ""


def count(one: Finding, wording: Wording, number: int | None = None) -> str:
    """Write the number of jobs, or another number of them."""
    return f"{wording.number(one.jobs if number is None else number)}{'+' if one.is_capped else ''}"


def listed(names: Sequence[str], wording: Wording) -> str:
    """List the first names, and how many more there are."""
    some, more = ", ".join(names[:NAMES_SHOWN]), len(names) - NAMES_SHOWN
    if more <= 0:
        return some
    text = ngettext("%(some)s and %(count)s more", "%(some)s and %(count)s more", more)
    return text % {"some": some, "count": wording.number(more)}


def waiting(one: Finding, wording: Wording) -> str:
    """Say that jobs wait."""
    return ngettext("%(count)s job waits", "%(count)s jobs wait", one.jobs) % {"count": count(one, wording)}


def due(one: Finding, wording: Wording) -> str:
    """Say that jobs are due."""
    return ngettext("%(count)s job is due", "%(count)s jobs are due", one.due) % {"count": count(one, wording, one.due)}


def several_names(one: Finding, names: Sequence[str], wording: Wording) -> dict[str, str]:
    """Return what a sentence about several queues or types needs."""
    return {
        "number": wording.number(len(names)),
        "waiting": waiting(one, wording),
        "names": listed(names, wording),
    }
