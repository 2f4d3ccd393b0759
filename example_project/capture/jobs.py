"""The pipeline from a captured conversation to published learnings. Each job enqueues the next one.

All three jobs run at least once, so each first checks what was already done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

from django.conf import settings
from pydantic import BaseModel, Field

from example_project.capture import learning, ports, validating
from example_project.capture.models import Conversation, Learning, Message
from example_project.capture.ports.assistant import CATEGORIES, Text
from example_project.capture.ports.chain import ChainConfig
from example_project.capture.ports.errors import Busy, Refused
from example_project.capture.uploading import Publication, Unconfirmed
from jobqueue import Discard, JobContext, Retry, Snooze, job

Ulid = Annotated[str, Field(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]


class SanitizeAIValidation(BaseModel):
    """Messages without data of known shapes, to be checked for what only a reader finds."""

    conversation_id: Ulid
    message_ids: list[Ulid]
    sanitization_version: str


class ExtractLearning(BaseModel):
    """A validated conversation, and the wanted categories of learnings."""

    conversation_id: Ulid
    min_confidence: Annotated[float, Field(ge=0.0, le=1.0)]
    categories: list[str]


class MineUpload(BaseModel):
    """A learning and its destination: endpoints, and the reference to a key."""

    learning_id: Ulid
    ipfs_endpoint: str
    chain_config: ChainConfig


@job(priority=1, max_retries=3, timeout=60, discard_on=(Conversation.DoesNotExist,))
def sanitize_ai_validation(payload: SanitizeAIValidation, ctx: JobContext) -> dict[str, object]:
    """Let the assistant check the sanitised messages, then enqueue the extraction of learnings."""
    conversation = Conversation.objects.get(pk=payload.conversation_id)
    result: dict[str, object] = {"skipped": True, "reason": "already-validated"}
    if conversation.status == Conversation.Status.CAPTURED:
        messages = list(conversation.messages.filter(pk__in=payload.message_ids))
        with outside():
            oversights = ports.open_assistant().validate(_texts(messages))
        if validating.record(conversation, messages, oversights):
            result = {"success": True, "findings": len(oversights)}
    ctx.enqueue(
        extract_learning.using(idempotency_key=f"extract-learning-{conversation.pk}"),
        conversation_id=conversation.pk,
        min_confidence=settings.CAPTURE["MIN_CONFIDENCE"],
        categories=list(CATEGORIES),
    )
    return result


@job(priority=5, max_retries=3, timeout=120, discard_on=(Conversation.DoesNotExist,))
def extract_learning(payload: ExtractLearning, ctx: JobContext) -> dict[str, int]:
    """Extract learnings from a conversation, and enqueue the publication of each."""
    conversation = Conversation.objects.get(pk=payload.conversation_id)
    if conversation.status == Conversation.Status.LEARNED:
        kept = conversation.metadata["learning_ids"]
    else:
        with outside():
            lessons = ports.open_assistant().extract(_texts(conversation.messages.all()), payload.categories)
        kept = learning.keep(conversation, [one for one in lessons if one.confidence >= payload.min_confidence])
    for learning_id in kept:
        ctx.enqueue(
            mine_upload.using(idempotency_key=f"upload-{learning_id}"),
            learning_id=learning_id,
            ipfs_endpoint=settings.CAPTURE["STORES"][0],
            chain_config=settings.CAPTURE["CHAINS"][0],
        )
    return {"learnings": len(kept)}


@job(priority=10, max_retries=5, timeout=120, discard_on=(Learning.DoesNotExist,), editable=False)
def mine_upload(payload: MineUpload, ctx: JobContext) -> dict[str, object]:
    """Publish a learning: store it, send a transaction, and wait for its block. Later attempts continue from there."""
    found = Learning.objects.get(pk=payload.learning_id)
    with outside():
        store, chain = ports.open_store(payload.ipfs_endpoint), ports.open_chain(payload.chain_config)
        upload = Publication(found, store, chain).advance(ctx)
    return {"cid": upload.ipfs_cid, "tx_hash": upload.chain_tx_hash, "block": upload.block}


@contextmanager
def outside() -> Iterator[None]:
    """Translate errors of outside services for the queue. Other errors are retried by the job's policy."""
    try:
        yield
    except Busy as busy:
        raise Retry(busy.retry_after, str(busy)) from busy
    except Refused as refused:
        raise Discard(str(refused)) from refused
    except Unconfirmed as unconfirmed:
        raise Snooze(settings.CAPTURE["CONFIRM_EVERY"], str(unconfirmed)) from None


def _texts(messages: Iterable[Message]) -> list[Text]:
    return [Text(one.pk, one.role, one.content) for one in messages]
