"""Lessons become learnings: those one may be sure of, each once, whoever said it first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.db import transaction

from example_project.capture.models import Conversation, Learning
from example_project.capture.ports.assistant import Lesson


def keep(conversation: Conversation, lessons: Iterable[Lesson]) -> list[str]:
    """Store lessons that nobody has stored, and remember the learnings of the conversation; return their ids.

    Two conversations that teach the same at the same time make one learning: the database refuses the second. Of two
    attempts at one conversation the first counts, so that each learning belongs to an attempt that has it published.
    """
    drafts = {_dedupe_hash(lesson): lesson for lesson in lessons}
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation.pk)
        if conversation.status == Conversation.Status.LEARNED:
            return list(conversation.metadata["learning_ids"])
        Learning.objects.bulk_create(
            (_learning(conversation, lesson, digest) for digest, lesson in sorted(drafts.items())),
            ignore_conflicts=True,
        )
        kept = list(Learning.objects.filter(dedupe_hash__in=drafts).order_by("id").values_list("id", flat=True))
        conversation.status = Conversation.Status.LEARNED
        conversation.metadata |= {"learning_ids": kept}
        conversation.save(update_fields=["status", "metadata", "updated_at"])
    return kept


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
