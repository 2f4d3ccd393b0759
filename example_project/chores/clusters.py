"""Clusters of similar memories, and their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from example_project.chores.models import Memory
from example_project.chores.vectors import Vector, embed, similarity

#: From this similarity on, two memories have the same content.
ALIKE = 0.8


@dataclass(frozen=True)
class Cluster:
    """Memories that are similar to the first of them."""

    memories: list[Memory]
    centre: Vector


@dataclass(frozen=True)
class Synthesis:
    """The summary of a cluster."""

    content: str
    importance: float
    confidence: float


def clusters_of(memories: Sequence[Memory]) -> list[Cluster]:
    """Add each memory to the first cluster whose first memory is similar, or start a new cluster."""
    found: list[Cluster] = []
    for memory, vector in zip(memories, embed([one.content for one in memories]), strict=True):
        home = next((one for one in found if similarity(one.centre, vector) > ALIKE), None)
        if home:
            home.memories.append(memory)
        else:
            found.append(Cluster([memory], vector))
    return found


def synthesise(cluster: Cluster) -> Synthesis:
    """Return the longest memory as the summary. The confidence grows with the number of memories."""
    return Synthesis(
        content=max((one.content for one in cluster.memories), key=len),
        importance=max(one.importance for one in cluster.memories),
        confidence=0.9 if len(cluster.memories) >= 3 else 0.7,
    )
