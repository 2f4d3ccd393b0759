"""Lessons become learnings: those one may be sure of, each once, whoever said it first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.db import transaction

from example_project.capture.models import Conversation, Learning
from example_project.capture.ports.assistant import Lesson
from jobqueue.clock import SYSTEM


def keep(conversation: Conversation, lessons: Iterable[Lesson]) -> list[str]:
    """Store lessons that nobody has stored, and remember the learnings of the conversation; return their ids.

    Two conversations that teach the same at the same time make one learning: the database refuses the second. Of two
    attempts at one conversation the first counts, so that each learning belongs to an attempt that has it published.
    """
    lesson_by_hash = {_dedupe_hash(lesson): lesson for lesson in lessons}
    # In one order for all, else two conversations that teach the same could wait for each other.
    drafts = [_learning(conversation, lesson, digest) for digest, lesson in sorted(lesson_by_hash.items())]
    rows = Conversation.objects.filter(pk=conversation.pk)
    with transaction.atomic():
        if not rows.exclude(status=Conversation.Status.LEARNED).update(
            status=Conversation.Status.LEARNED,
            metadata=conversation.metadata | {"learning_ids": []},
            updated_at=SYSTEM.now(),
        ):
            return list(rows.get().metadata["learning_ids"])
        if drafts:
            Learning.objects.bulk_create(drafts, ignore_conflicts=True)
            kept = list(
                Learning.objects.filter(dedupe_hash__in=lesson_by_hash).order_by("id").values_list("id", flat=True)
            )
            rows.update(metadata=conversation.metadata | {"learning_ids": kept})
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
