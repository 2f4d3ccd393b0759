"""The maintenance of the chores' data, which runs on schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import connection
from django.db.models import F

from example_project.chores.models import Embedding, Memory
from jobqueue import Cron, JobContext, job, schedule
from jobqueue.clock import SYSTEM

#: The namespace of what was learned from the vectors of the others.
PATTERNS = "patterns"


@job(priority=8, atomic=True, timeout=20)
def memory_importance_decay(decay_factor: float = 0.99) -> int:
    """Let all memories lose importance. The transaction is the job's, so no retry does it twice."""
    return Memory.objects.filter(importance__gt=0).update(importance=F("importance") * decay_factor)


@job(priority=9)
def index_optimization(threshold: float = 0.8) -> list[str]:
    """Refresh the statistics of the indexes on vectors, if that share of the vectors changed within a day."""
    table, since = Embedding._meta.db_table, SYSTEM.now() - timedelta(days=1)
    total, fresh = Embedding.objects.count(), Embedding.objects.filter(updated_at__gt=since).count()
    if not fresh or fresh < threshold * total:
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")
    return [table]


@job(priority=9, timeout=1_800)
def pattern_training(ctx: JobContext, batch_size: int = 1000, epochs: int = 5) -> dict[str, int]:
    """Learn the mean vector of each namespace, and store it."""
    names = list(Embedding.objects.exclude(namespace=PATTERNS).values_list("namespace", flat=True).distinct())
    for name in names:
        ctx.checkpoint()
        vectors = list(Embedding.objects.filter(namespace=name).values_list("vector", flat=True)[: batch_size * epochs])
        Embedding.objects.update_or_create(namespace=PATTERNS, source_id=name, defaults={"vector": _mean(vectors)})
    return {"namespaces": len(names)}


def _mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=False)]


@job(priority=4)
def quota_check(most_memories: int = 100_000, most_vectors: int = 100_000) -> dict[str, object]:
    """Count what is stored, and name what exceeds its quota."""
    counts = {"memories": Memory.objects.count(), "vectors": Embedding.objects.count()}
    quotas = {"memories": most_memories, "vectors": most_vectors}
    return {**counts, "exceeded": [name for name, count in counts.items() if count > quotas[name]]}


schedule("memory-importance-decay", memory_importance_decay, Cron("0 0 */6 * * *"), payload={"decay_factor": 0.99})
schedule("index-optimization", index_optimization, Cron("0 0 3 * * *", tz="UTC"), payload={"threshold": 0.8})
schedule(
    "pattern-training-daily",
    pattern_training,
    Cron("0 0 4 * * *", tz="UTC"),
    payload={"batch_size": 1000, "epochs": 5},
    overlap="skip",
)
schedule("quota-check", quota_check, Cron("0 0 * * * *"), missed="skip")
