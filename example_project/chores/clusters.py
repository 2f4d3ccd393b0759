"""Memories that tell the same are brought together, and what they come to is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from example_project.chores.models import Memory
from example_project.chores.vectors import Vector, embed, similarity

#: From here on two memories tell the same.
ALIKE = 0.8


@dataclass(frozen=True)
class Cluster:
    """Memories that are like the first of them."""

    memories: list[Memory]
    centre: Vector


@dataclass(frozen=True)
class Synthesis:
    """What a cluster comes to."""

    content: str
    importance: float
    confidence: float


def clusters_of(memories: Sequence[Memory]) -> list[Cluster]:
    """Give each memory to the first cluster whose beginning it is like, or begin one with it."""
    found: list[Cluster] = []
    for memory, vector in zip(memories, embed([one.content for one in memories]), strict=True):
        home = next((one for one in found if similarity(one.centre, vector) > ALIKE), None)
        if home:
            home.memories.append(memory)
        else:
            found.append(Cluster([memory], vector))
    return found


def synthesise(cluster: Cluster) -> Synthesis:
    """Let the longest memory speak for all; the more there are, the surer it is."""
    return Synthesis(
        content=max((one.content for one in cluster.memories), key=len),
        importance=max(one.importance for one in cluster.memories),
        confidence=0.9 if len(cluster.memories) >= 3 else 0.7,
    )
