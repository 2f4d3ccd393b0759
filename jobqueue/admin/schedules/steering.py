"""What an operator can do with a schedule, beside editing it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from jobqueue.backends import current
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.schedules import operation
from jobqueue.schedules.sync import reset

LABELS: dict[str, Any] = {
    "pause": _("Pause"),
    "resume": _("Resume"),
    "run": _("Run now"),
    "reset": _("Reset to the code"),
    "remove": _("Remove"),
}
TITLES: dict[str, Any] = {
    "pause": _("Pause the schedule %(name)s?"),
    "resume": _("Resume the schedule %(name)s?"),
    "run": _("Run the schedule %(name)s now?"),
    "reset": _("Reset the schedule %(name)s to what the code says?"),
    "remove": _("Remove the schedule %(name)s?"),
}
DONE: dict[str, Any] = {
    "pause": _("The schedule %(name)s is paused. Its jobs continue."),
    "resume": _("The schedule %(name)s is resumed."),
    "run": _("A job of the schedule %(name)s is enqueued."),
    "reset": _("The schedule %(name)s is as the code says."),
    "remove": _("The schedule %(name)s is removed. Its jobs stay."),
}
MAY = {
    "pause": "jobqueue.pause_schedule",
    "resume": "jobqueue.pause_schedule",
    "run": "jobqueue.run_schedule",
    "reset": "jobqueue.edit_schedule",
    "remove": "jobqueue.remove_schedule",
}


def steer(verb: str, schedule: ScheduleRecord, why: str) -> bool:
    """Carry out a verb. Return whether something changed."""
    match verb:
        case "pause":
            return operation.pause(schedule, why)
        case "resume":
            return operation.resume(schedule)
        case "run":
            return operation.run_now(schedule).created
        case "reset":
            return reset(current(), schedule)
        case _:
            return current().schedules.remove(schedule)
