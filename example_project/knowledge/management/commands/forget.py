"""``manage.py forget``: delete a topic. What was learned later stays."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from example_project.knowledge.command import KnowledgeCommand
from example_project.knowledge.models import Fact, Summary


class Command(KnowledgeCommand):
    """Deletes the facts of a topic and its summary."""

    help = "Forget everything about a topic."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("topic")

    def handle(self, *_: Any, topic: str, **__: Any) -> None:
        count, _details = Fact.objects.filter(topic=topic).delete()
        Summary.objects.filter(topic=topic).delete()
        self.stdout.write(f"Forgot {count} facts about {topic}.")
