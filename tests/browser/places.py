"""Every page of the admin, and the way to it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.urls import reverse

#: The sizes of a window: on a desk, and on a telephone.
WIDE, NARROW = (1300, 900), (390, 844)
#: The smallest telephone, which is also a window of 1,280 pixels at 400 %; and that of a desk at 200 %.
SMALLEST, ZOOMED = (320, 640), (650, 450)

ACTIONS = {
    "retry": "Retry selected jobs",
    "run_now": "Run selected jobs now",
    "reschedule": "Reschedule selected jobs",
    "prioritise": "Change the priority of selected jobs",
    "move": "Move selected jobs to another queue",
    "cancel": "Cancel selected jobs",
    "purge": "Purge selected jobs",
}
STATUSES = ("queued", "retrying", "paused", "in_progress", "completed", "failed", "dead_letter")


def address(name, /, *args, **query):
    """Say where a page of the admin is."""
    there = reverse(f"admin:jobqueue_{name}", args=[quote(str(one)) for one in args])
    return f"{there}?{urlencode(query)}" if query else there


def to_read(found):
    """By name, the address of each page that somebody may see who may only look."""
    return {
        "app index": "/admin/jobqueue/",
        "dashboard of the hour": address("dashboard_changelist"),
        "dashboard of the day": address("dashboard_changelist", window="day"),
        "dashboard of the week": address("dashboard_changelist", window="week", type="charge_card"),
        "jobs": address("job_changelist"),
        "jobs, filtered": address("job_changelist", status="dead_letter", q="type:charge_card error:provider"),
        "jobs, none": address("job_changelist", q="type:resize_image tenant:nobody"),
        "jobs, not understood": address("job_changelist", q="statsu:dead_letter"),
        **{f"job, {one}": address("job_change", getattr(found, one)) for one in STATUSES},
        "log of a job": address("job_history", found.dead_letter),
        "dead letters by error": address("deadletter_changelist"),
        "dead letters of one error": address("deadletter_by_error", fingerprint=found.fingerprint),
        "dead letters": address("deadletter_all"),
        "dead letter": address("deadletter_change", found.dead_letter),
        "queues": address("queue_changelist"),
        "queue": address("queue_one", queue="payments"),
        "orders": address("order_changelist"),
        "workers": address("worker_changelist"),
        "worker": address("worker_change", found.owner),
        "silent worker": address("worker_change", found.silent_owner),
    }


def stretched(found):
    """By name, the address of each page that shows the longest names."""
    return {
        "dashboard": address("dashboard_changelist", queue=found.name),
        "jobs": address("job_changelist", q=f"type:{found.name}"),
        "dead letter": address("job_change", found.dead_letter),
        "job in progress": address("job_change", found.in_progress),
        "log": address("job_history", found.dead_letter),
        "dead letters by error": address("deadletter_changelist"),
        "dead letters of one error": address("deadletter_by_error", fingerprint=found.fingerprint),
        "queues": address("queue_changelist"),
        "queue": address("queue_one", queue=found.name),
        "resuming": address("queue_resume", scope="queue", name=found.name),
        "stopping a worker": address("worker_stop", found.owner),
        "workers": address("worker_changelist"),
        "worker": address("worker_change", found.owner),
    }


def to_act(found):
    """By name, how to get to each page on which something is done."""
    return {
        "pausing a queue": lambda tab: tab.open(address("queue_pause", scope="queue", name="mail")),
        "resuming a queue": lambda tab: tab.open(address("queue_resume", scope="queue", name="payments")),
        "pausing a type": lambda tab: tab.open(address("queue_pause", scope="type", name="resize_image")),
        "pausing, without a reason": lambda tab: _pause_for_nothing(tab),
        "another payload": lambda tab: tab.open(address("job_edit", found.dead_letter)),
        "another payload, which does not fit": lambda tab: _edit(tab, found.dead_letter, '{"order_id": "none"}'),
        "another payload, to be agreed to": lambda tab: _edit(
            tab, found.dead_letter, '{"order_id": 7, "amount": "1 EUR", "card_token": "[redacted]"}'
        ),
        "quieting a worker": lambda tab: tab.open(address("worker_quiet", found.owner)),
        "stopping a worker": lambda tab: tab.open(address("worker_stop", found.owner)),
        "types to enqueue": lambda tab: tab.open(address("job_enqueue")),
        "enqueueing": lambda tab: tab.open(address("job_enqueue", type="charge_card")),
        "enqueueing, with mistakes": lambda tab: _enqueue_nothing(tab),
        "running again": lambda tab: tab.open(address("job_again", found.dead_letter)),
        **{f"before: {verb}": _asking(verb, found) for verb in ACTIONS},
        "before: retry of all of an error": lambda tab: _ask_for_group(tab, found, "Retry all"),
        "before: purge of all of an error": lambda tab: _ask_for_group(tab, found, "Purge all"),
        "before: everything that matches": lambda tab: ask(tab, "retry", "status:dead_letter", "all"),
        # The last, because the jobs are no dead letters afterwards.
        "an order": lambda tab: _order(tab, found),
    }


def ask(tab, verb, query, which="first"):
    """Select the first job that a search finds, or all that match on all pages, and choose an action."""
    tab.open(address("job_changelist", q=query))
    tab.tick(".jq-all input" if which == "all" else "input.action-select")
    tab.choose("Action:", ACTIONS[verb])
    tab.click(".actions button[type=submit]")
    tab.sees("No, take me back")


def _asking(verb, found):
    fitting = found.dead_letter if verb in ("retry", "purge") else found.queued
    return lambda tab: ask(tab, verb, f"id:{fitting}")


def _pause_for_nothing(tab):
    tab.open(address("queue_pause", scope="queue", name="mail"))
    tab.ask("document.querySelector('.jq-reason').noValidate = true")
    tab.press("Pause")
    tab.sees("This field is required.")


def _edit(tab, job_id, payload):
    tab.open(address("job_edit", job_id))
    tab.fill("Payload:", payload)
    tab.press("Review the changes")
    tab.sees("No, take me back")


def _enqueue_nothing(tab):
    tab.open(address("job_enqueue", type="charge_card"))
    tab.press("Enqueue")
    tab.sees("Please correct the error")


def _order(tab, found):
    _ask_for_group(tab, found, "Retry all")
    tab.fill("At most … a minute:", "10")
    tab.press("Retry 20 jobs")
    tab.sees("What became of the jobs")


def _ask_for_group(tab, found, words):
    tab.open(address("deadletter_by_error", fingerprint=found.fingerprint))
    tab.press(words)
    tab.sees("No, take me back")
