"""Tests of two concurrent attempts at one job: the second respects what the first has stored."""

from __future__ import annotations

import pytest

from example_project.capture import learning, validating
from example_project.capture.merging import Merged
from example_project.capture.models import Conversation, Learning, Message
from example_project.capture.ports.assistant import Lesson, Oversight

SAID = "Max Privat, the brother of Eva Privata, decided it."


@pytest.fixture
def conversation(databases):
    conversation = Conversation.objects.create(source="test", metadata={"event_fingerprint": "f"})
    Message.objects.create(conversation=conversation, position=0, role="user", content=SAID, sanitization_version="1")
    yield conversation
    Learning.objects.all().delete()
    conversation.delete()


def begin(conversation):
    """What an attempt reads before it asks the assistant."""
    return Conversation.objects.get(pk=conversation.pk), list(conversation.messages.all())


def found(message, *snippets):
    return [Oversight(message.pk, "name", 0.9, snippet) for snippet in snippets]


def lesson(content):
    return Lesson("decision", content, content, 0.9)


@pytest.mark.sqlite
def test_what_one_attempt_took_out_does_not_come_back_with_another(conversation):
    late, messages = begin(conversation)
    assert validating.record(*begin(conversation), found(messages[0], "Max Privat", "Eva Privata"))
    learning.keep(begin(conversation)[0], [])
    assert not validating.record(late, messages, found(messages[0], "Max Privat"))
    message = Message.objects.get()
    assert message.content == "[NAME], the brother of [NAME], decided it."
    assert message.sanitization_entries.count() == 2
    conversation.refresh_from_db()
    assert (conversation.status, conversation.metadata["learning_ids"]) == ("learned", [])


@pytest.mark.sqlite
def test_a_finding_within_another_one_leaves_no_half_of_it(conversation):
    _, messages = begin(conversation)
    validating.record(conversation, messages, found(messages[0], "Max", "Max Privat", "Eva", "Eva Privata"))
    assert Message.objects.get().content == "[NAME], the brother of [NAME], decided it."


@pytest.mark.sqlite
def test_an_attempt_that_was_overtaken_has_the_learnings_of_the_other_one_published(conversation):
    late, _ = begin(conversation)
    kept = learning.keep(begin(conversation)[0], [lesson("One.")])
    assert learning.keep(late, [lesson("Another one.")]) == kept
    assert list(Learning.objects.values_list("content", flat=True)) == ["One."]


@pytest.mark.sqlite
def test_what_another_program_noted_meanwhile_stays(conversation):
    late, messages = begin(conversation)
    Conversation.objects.filter(pk=late.pk).update(metadata={"event_fingerprint": "g", "tags": ["a"]})
    assert validating.record(late, messages, found(messages[0], "Max Privat"))
    stored = Conversation.objects.get(pk=late.pk).metadata
    assert stored.pop("ai_validation_timestamp").endswith("Z")
    assert stored == {"event_fingerprint": "g", "tags": ["a"], "ai_validation_completed": True}
    Conversation.objects.filter(pk=late.pk).update(metadata={"event_fingerprint": "h"})
    kept = learning.keep(late, [lesson("One.")])
    assert Conversation.objects.get(pk=late.pk).metadata == {"event_fingerprint": "h", "learning_ids": kept}


def test_both_databases_set_the_keys_that_are_named_and_no_other(alias):
    rows = Conversation.objects.using(alias)
    before = {"kept": {"deep": [1, None]}, "percent": "100 %s", "replaced": {"a": 1}}
    one = rows.create(source="test", metadata=before)
    rows.filter(pk=one.pk).update(metadata=Merged("metadata", {"replaced": ["ä", '"'], "new": True}))
    assert rows.get(pk=one.pk).metadata == before | {"replaced": ["ä", '"'], "new": True}
    assert rows.filter(metadata__new=True).count() == 1
    one.delete()
