"""The duties that one worker does for all, as the page of the workers shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from jobqueue.admin import display
from jobqueue.backends import current
from jobqueue.models import Worker


class DutyRow(NamedTuple):
    """One duty."""

    name: str
    worker: str
    done: Any
    took: str
    due: Any
    failure: str


def all_of(workers: Iterable[Worker]) -> list[DutyRow]:
    """List the duties. Workers are named as far as they are shown."""
    names = {one.owner: one.name for one in workers}
    return [
        DutyRow(
            name=one.name,
            worker=names.get(one.owner, one.owner),
            done=one.ran_at and display.near(one.ran_at, display.ago(one.ran_at)),
            took=display.duration(one.seconds) if one.ran_at else "",
            due=display.near(one.due_at, display.ago(one.due_at)),
            failure=display.first_line(one.failure),
        )
        for one in current().duties.all()
    ]
