"""Tests of the pipeline's admin: pages are complete, link to jobs, and are read-only."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from example_project.capture.capturing import capture
from example_project.capture.events import Event
from example_project.capture.models import Conversation, Learning, Upload
from jobqueue.clock import SYSTEM

pytestmark = pytest.mark.sqlite


@pytest.fixture
def rows(databases, settings):
    """A conversation that was captured, and what came of it."""
    settings.JOBQUEUE = {"DATABASE": "default"}
    captured = capture(Event.model_validate({"messages": [{"role": "user", "content": "Mail <b>@</b> a@example.org"}]}))
    conversation = Conversation.objects.get(pk=captured.conversation_id)
    common = {"conversation": conversation, "category": "pitfall", "confidence": 0.9}
    begun = Learning.objects.create(title="Wet labels fail", content="x", tags=["label"], dedupe_hash="1", **common)
    Learning.objects.create(title="Dry ones do not", content="y", dedupe_hash="2", **common)
    Upload.objects.create(learning=begun, status="tx_submitted", ipfs_cid="bafy", uploaded_at=SYSTEM.now())
    yield captured
    Upload.objects.all().delete()
    Learning.objects.all().delete()
    Conversation.objects.all().delete()
    User.objects.all().delete()


@pytest.fixture
def visitor(rows):
    visitor = Client()
    visitor.force_login(User.objects.create_superuser("root"))
    return visitor


def page(visitor, model, *arguments, kind="changelist", **query):
    answer = visitor.get(reverse(f"admin:capture_{model}_{kind}", args=arguments), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_lists_show_how_far_everything_is(visitor, rows):
    conversations = page(visitor, "conversation")
    assert rows.conversation_id in conversations
    assert f"payload.conversation_id%3A{rows.conversation_id}" in conversations
    assert "captured" in conversations
    assert page(visitor, "learning", upload__status="tx_submitted").count("transaction sent") >= 1
    assert "not begun" in page(visitor, "learning")
    assert "bafy" in page(visitor, "upload")
    assert "[EMAIL]" in page(visitor, "sanitizationentry")


def test_learnings_are_found_by_their_words(visitor):
    assert "Wet labels" in page(visitor, "learning", q="label wet")
    assert "Dry ones" not in page(visitor, "learning", q="label wet")


def test_a_conversation_shows_its_messages_without_markup_and_nobody_changes_it(visitor, rows):
    shown = page(visitor, "conversation", rows.conversation_id, kind="change")
    assert "Mail &lt;b&gt;@&lt;/b&gt; [EMAIL]" in shown
    assert 'name="_save"' not in shown
    for model in ("conversation", "learning", "upload", "sanitizationentry"):
        assert visitor.get(reverse(f"admin:capture_{model}_add")).status_code == 403


def test_the_links_lead_to_the_jobs(visitor, rows):
    answer = visitor.get(
        reverse("admin:jobqueue_job_changelist"), {"q": f"payload.conversation_id:{rows.conversation_id}"}
    )
    assert rows.job_id in answer.content.decode()
