"""The chores, as jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from example_project.capture.jobs import outside
from example_project.capture.ports import open_assistant
from example_project.chores import (
    aws,
    maintenance,  # noqa: F401 - declares jobs and schedules
    results,
)
from example_project.chores.clusters import Cluster, clusters_of, synthesise
from example_project.chores.models import Embedding, Memory
from example_project.chores.vectors import embed
from jobqueue import Cron, Exponential, JobContext, Receipt, job, schedule
from jobqueue.clock import SYSTEM

#: How many texts go to the embedder at a time, and how many sessions are deleted in one statement.
BATCH = 32
SWEEP = 500
#: Postgres has no text with such a character.
_WITHOUT_NUL = r"^[^\x00]*$"


class Foreign(BaseModel):
    """A payload with the field names of programs in another language."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


# A prompt costs money, so the same prompt is queued once, however often it is asked.


class ClaudeExtraction(Foreign):
    """A prompt, and the file for its answer."""

    prompt: Annotated[str, Field(min_length=1)]
    target_path: str
    requirement_id: str
    prompt_hash: str

    @model_validator(mode="after")
    def _hash_is_of_prompt(self) -> Self:
        if self.prompt_hash != prompt_hash(self.prompt):
            raise ValueError("promptHash is not that of the prompt")
        return self


def prompt_hash(prompt: str) -> str:
    """Hash a prompt."""
    return sha256(prompt.encode()).hexdigest()


def ask(prompt: str, target_path: str, requirement_id: str) -> Receipt:
    """Enqueue a prompt, unless the same one is queued or running."""
    digest = prompt_hash(prompt)
    asked = claude_extraction.using(unique_key=f"claude-extraction-{digest}")
    return asked.enqueue(prompt=prompt, target_path=target_path, requirement_id=requirement_id, prompt_hash=digest)


@job(timeout=300)
def claude_extraction(payload: ClaudeExtraction) -> dict[str, object]:
    """Let the assistant answer a prompt, and write the complete answer to a file."""
    with outside():
        answer = open_assistant().complete(payload.prompt)
    return {"path": str(results.write(payload.target_path, answer)), "characters": len(answer)}


# The payload describes the resource, not the change, so running it twice has the same result.


class SyncAws(Foreign):
    """A resource and its desired state. For one that should not exist, ``config`` is ``{"state": "absent"}``."""

    resource_type: Literal["s3_bucket", "sqs_queue"]
    resource_id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$")]
    config: dict[str, Any] = Field(default_factory=dict)


@job(max_retries=5, timeout=60, retry=Exponential(base=2, cap=300))
def sync_aws(payload: SyncAws) -> dict[str, str]:
    """Bring a resource to its desired state, and return what was done."""
    return {"action": aws.SYNCS[payload.resource_type](payload.resource_id, payload.config)}


# A bad item only affects its batch, and the result names the batch.


class Item(Foreign):
    """A text and its source."""

    source_id: Annotated[str, Field(max_length=100, pattern=_WITHOUT_NUL)]
    text: str


class EmbeddingBatch(Foreign):
    """Texts that belong together."""

    items: Annotated[list[Item], Field(min_length=1, max_length=2000)]
    namespace: Annotated[str, Field(max_length=50, pattern=_WITHOUT_NUL)]


@job(priority=6, max_retries=5, timeout=60, retry=Exponential(base=2))
def embedding_batch(payload: EmbeddingBatch, ctx: JobContext) -> dict[str, object]:
    """Store vectors of texts, batch by batch. A failed batch is recorded, and the next one follows."""
    failed: dict[str, str] = {}
    batches = [payload.items[start : start + BATCH] for start in range(0, len(payload.items), BATCH)]
    for number, batch in enumerate(batches, start=1):
        ctx.checkpoint()
        try:
            _store_vectors(payload.namespace, batch)
        except ValueError as error:
            failed |= {item.source_id: str(error) for item in batch}
        ctx.progress(100 * number / len(batches), phase="embedding", batch=number, batches=len(batches))
    total = len(payload.items)
    return {"total": total, "succeeded": total - len(failed), "failed": len(failed), "errors": failed}


def _store_vectors(namespace: str, items: Sequence[Item]) -> None:
    vectors = embed([item.text for item in items])
    latest = {item.source_id: vector for item, vector in zip(items, vectors, strict=True)}
    Embedding.objects.bulk_create(
        [Embedding(namespace=namespace, source_id=key, vector=vector) for key, vector in latest.items()],
        update_conflicts=True,
        unique_fields=["namespace", "source_id"],
        update_fields=["vector", "updated_at"],
    )


# The slow part runs before the transaction. The fast part checks whether it was done before.


class MemoryConsolidation(Foreign):
    """Memories, and whether they lose importance to their summary."""

    memory_ids: list[int]
    consolidation_type: Literal["summarise", "merge"] = "merge"


@job(max_retries=3, timeout=300, retry=Exponential(base=5))
def memory_consolidation(payload: MemoryConsolidation, ctx: JobContext) -> dict[str, object]:
    """Turn episodes with the same content into knowledge."""
    memories = list(Memory.objects.filter(pk__in=payload.memory_ids).order_by("id"))
    if len(memories) < 2:
        return {"consolidated": False, "reason": "insufficient_memories"}
    ctx.progress(10, phase="analysing")
    clusters = [cluster for cluster in clusters_of(memories) if len(cluster.memories) > 1]
    ctx.progress(40, phase="generating")
    made = [_made_of(cluster, ctx.job_id) for cluster in clusters]
    ctx.progress(80, phase="storing")
    _store_once(ctx.job_id, made, clusters, merge=payload.consolidation_type == "merge")
    ctx.progress(100, phase="complete")
    return {"consolidated": True, "clusters": len(clusters), "memories": len(memories)}


def _made_of(cluster: Cluster, job_id: str) -> Memory:
    synthesis = synthesise(cluster)
    return Memory(
        kind=Memory.Kind.SEMANTIC,
        content=synthesis.content,
        importance=synthesis.importance,
        source_type="consolidation",
        source_id=job_id,
        metadata={"sources": [one.pk for one in cluster.memories], "confidence": synthesis.confidence},
    )


def _store_once(job_id: str, made: Sequence[Memory], clusters: Sequence[Cluster], *, merge: bool) -> None:
    """Store everything, unless an earlier attempt did, so that importance isn't halved twice."""
    sources = [one.pk for cluster in clusters for one in cluster.memories]
    with transaction.atomic():
        # If there are two attempts at once, the second waits here and then sees the result of the first.
        list(Memory.objects.select_for_update().filter(pk__in=sources).order_by("pk").values_list("pk"))
        if Memory.objects.filter(source_type="consolidation", source_id=job_id).exists():
            return
        Memory.objects.bulk_create(made)
        if merge:
            Memory.objects.filter(pk__in=sources).update(importance=F("importance") * 0.5)


# Large deletions are done in small steps, so that others don't wait, and can be stopped in between.


@job(priority=8, max_retries=3, timeout=120, retry=Exponential(base=10))
def session_cleanup(ctx: JobContext, max_age: float = 86_400.0) -> int:
    """Delete the sessions that expired more than the given number of seconds ago."""
    before = SYSTEM.now() - timedelta(seconds=max_age)
    deleted = 0
    while keys := list(Session.objects.filter(expire_date__lt=before).values_list("pk", flat=True)[:SWEEP]):
        ctx.checkpoint()
        deleted += Session.objects.filter(pk__in=keys).delete()[0]
    return deleted


schedule(
    "session-cleanup", session_cleanup, Cron("0 */15 * * * *"), payload={"max_age": 86_400}, overlap="skip", jitter=30
)
