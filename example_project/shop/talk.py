"""The conversations of customers with the shop, which are captured for the pipeline."""

from __future__ import annotations

from django.db import transaction

from example_project.capture.capturing import Captured, capture
from example_project.capture.events import Event, Said
from example_project.shop.trade import TOWNS, ChangedMind, Day

CONVERSATIONS = 30


def talk(day: Day) -> None:
    """Capture the conversations of a day. Some hooks send twice; one sends inside a transaction that rolls back."""
    for number in range(CONVERSATIONS):
        event = _event(day.run, number)
        _note(day, capture(event))
        if number % 10 == 3:
            _note(day, capture(event))
    _abandon(day)


def _event(run: str, number: int) -> Event:
    """Return a conversation that begins with private data and ends with a lesson."""
    town = TOWNS[number % len(TOWNS)]
    asked = (
        f"Where is order {run}-{number:03}? Write to customer{number}@example.org or call +49 30 55512{number:02}. "
        f"I paid with 4111 1111 1111 1111."
    )
    answered = (
        f"We decided to send {run}-{number:03} again, because its parcel was damaged. "
        f"In {run} parcels to {town} fail when the label is wet. Thank you for your patience."
    )
    return Event(source=run, messages=[Said(role="user", content=asked), Said(role="assistant", content=answered)])


def _note(day: Day, captured: Captured) -> None:
    if captured.created:
        day.accepted.append(captured.job_id or "")
        day.conversations.append(captured.conversation_id)
    else:
        day.duplicates += 1


def _abandon(day: Day) -> None:
    try:
        with transaction.atomic():
            captured = capture(_event(day.run, CONVERSATIONS))
            raise ChangedMind(captured.conversation_id)
    except ChangedMind:
        day.abandoned_jobs.append(captured.job_id or "")
        day.abandoned_conversations.append(captured.conversation_id)
