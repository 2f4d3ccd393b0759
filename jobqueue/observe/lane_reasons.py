"""Why a lane holds a job, in a sentence."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext

from jobqueue.observe.wording import Wording
from jobqueue.records import Hold, LaneHold


def lane_reason(hold: LaneHold, now: datetime, wording: Wording) -> tuple[str, str]:
    """Return the code and the sentence of a reason, with the job that holds the lane and what it does."""
    match hold.hold:
        case Hold.RUNS:
            return "lane_runs", gettext("Its lane waits for %(id)s, which runs.") % {"id": hold.id}
        case Hold.IS_DUE:
            text = gettext("It is behind %(id)s in its lane, which is due and has not started.")
            return "lane_behind", text % {"id": hold.id}
        case Hold.WAITS:
            about = {"id": hold.id, "length": wording.length((hold.due_at or now) - now)}
            return "lane_waits", gettext("Its lane waits for %(id)s, which runs in %(length)s.") % about
        case _:
            text = gettext("Its lane has stopped at %(id)s, which is a dead letter. Retry it, or purge it to skip it.")
            return "lane_stopped", text % {"id": hold.id}
