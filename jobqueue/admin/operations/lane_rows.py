"""The lanes of an ordered queue, as the page of the queue shows them."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.dashboard import scales
from jobqueue.backends import current
from jobqueue.observe.lanes import lanes_of
from jobqueue.records import Hold, LaneHold

#: The most lanes of a queue that its page shows.
MOST_SHOWN = 20


class LaneRow(NamedTuple):
    """A lane: its name, how many jobs wait and run, its first job, and the job that holds it with what it does."""

    name: str
    waiting: str
    running: str
    head: str
    holder: str
    does: str


def rows(queue: str) -> list[LaneRow]:
    """Return the lanes of a queue, or none if it isn't ordered."""
    return [
        LaneRow(
            one.name,
            scales.number(one.depth),
            scales.number(len(one.running)),
            one.head or "",
            one.hold.id if one.hold else "",
            _does(one.hold) if one.hold else "",
        )
        for one in lanes_of(current(), [queue], MOST_SHOWN)
    ]


def _does(hold: LaneHold) -> str:
    match hold.hold:
        case Hold.RUNS:
            return gettext("runs")
        case Hold.IS_DUE:
            return gettext("is due, and has not started")
        case Hold.WAITS:
            moment = gettext("an unknown time") if hold.due_at is None else display.WORDING.moment(hold.due_at)
            return gettext("waits until %(moment)s") % {"moment": moment}
        case _:
            return gettext("is a dead letter")
