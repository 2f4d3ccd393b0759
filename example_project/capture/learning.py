"""The step from lessons to learnings: the certain ones, each once, no matter who said it first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.db import transaction

from example_project.capture.merging import Merged
from example_project.capture.models import Conversation, Learning
from example_project.capture.ports.assistant import Lesson
from jobqueue.clock import SYSTEM


def keep(conversation: Conversation, lessons: Iterable[Lesson]) -> list[str]:
    """Store new lessons, record the conversation's learnings, and return their ids.

    If two conversations teach the same thing at once, there is one learning, because the database refuses the second.
    Of two attempts at one conversation the first counts, so that each learning belongs to the attempt that publishes
    it.
    """
    lesson_by_hash = {_dedupe_hash(lesson): lesson for lesson in lessons}
    # In a fixed order, because otherwise two conversations with the same lessons could deadlock.
    drafts = [_learning(conversation, lesson, digest) for digest, lesson in sorted(lesson_by_hash.items())]
    rows = Conversation.objects.filter(pk=conversation.pk)
    with transaction.atomic():
        if not rows.exclude(status=Conversation.Status.LEARNED).update(
            status=Conversation.Status.LEARNED,
            metadata=Merged("metadata", {"learning_ids": []}),
            updated_at=SYSTEM.now(),
        ):
            return list(rows.get().metadata["learning_ids"])
        if drafts:
            Learning.objects.bulk_create(drafts, ignore_conflicts=True)
            kept = list(
                Learning.objects.filter(dedupe_hash__in=lesson_by_hash).order_by("id").values_list("id", flat=True)
            )
            rows.update(metadata=Merged("metadata", {"learning_ids": kept}))
            return kept
    return []


def _dedupe_hash(lesson: Lesson) -> str:
    return hashlib.sha256(f"{lesson.category}:{lesson.content}".encode()).hexdigest()


def _learning(conversation: Conversation, lesson: Lesson, digest: str) -> Learning:
    return Learning(
        conversation=conversation,
        category=lesson.category,
        title=lesson.title,
        content=lesson.content,
        confidence=lesson.confidence,
        tags=list(lesson.tags),
        dedupe_hash=digest,
        source_message_ids=list(lesson.source_message_ids),
    )
