"""Tests of unusual events: those with nothing but private data, and ids of deleted conversations."""

from __future__ import annotations

import pytest

from example_project.capture import validating
from example_project.capture.capturing import Contradiction, capture
from example_project.capture.events import Event
from example_project.capture.models import Conversation
from example_project.capture.ports.assistant import Oversight
from example_project.capture.snippets import MOST_LOGGED

pytestmark = pytest.mark.sqlite
MANY = MOST_LOGGED + 500


@pytest.fixture
def conversation(databases, settings):
    """A conversation that consisted of addresses, and of names that only a reader finds."""
    settings.JOBQUEUE = {"DATABASE": "default"}
    said = [
        {"role": "user", "content": " ".join(f"a{number}@example.org" for number in range(MANY))},
        {"role": "user", "content": " ".join(f"<name{number}>" for number in range(MANY))},
    ]
    captured = capture(Event.model_validate({"messages": said}))
    assert captured.removed == MANY
    yield Conversation.objects.get(pk=captured.conversation_id)
    Conversation.objects.all().delete()


def test_all_that_is_private_goes_though_not_all_of_it_is_logged(conversation):
    assert conversation.metadata["removed"] == MANY
    assert conversation.sanitization_entries.count() == MOST_LOGGED
    assert "@" not in conversation.messages.get(position=0).content


def test_so_it_is_with_what_a_reader_finds(conversation):
    message = conversation.messages.get(position=1)
    found = [Oversight(message.pk, "name", 0.9, f"<name{number}>") for number in range(MANY)]
    assert validating.record(conversation, [message], found)
    assert conversation.sanitization_entries.filter(detector="ai").count() == MOST_LOGGED
    assert "name" not in conversation.messages.get(position=1).content


def test_the_id_of_a_conversation_that_was_deleted_is_not_taken_again(databases, settings):
    settings.JOBQUEUE = {"DATABASE": "default"}
    event = Event.model_validate({"messages": [{"role": "user", "content": "Hello."}]})
    assert capture(event).created
    Conversation.objects.all().delete()
    with pytest.raises(Contradiction):
        capture(event)
    assert not Conversation.objects.exists()
