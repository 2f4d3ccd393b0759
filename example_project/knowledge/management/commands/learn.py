"""``manage.py learn``: store a fact. Facts don't depend on each other, so they are stored in parallel."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from example_project.knowledge.command import ParallelCommand
from example_project.knowledge.models import Fact


class Command(ParallelCommand):
    """Stores a fact once, however often the job is repeated."""

    help = "Store a fact about a topic."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("topic")
        parser.add_argument("text")

    def handle(self, *_: Any, topic: str, text: str, **__: Any) -> None:
        if not text.strip():
            raise CommandError(f"There is no fact about {topic}: the text is empty.")
        _fact, is_new = Fact.objects.get_or_create(topic=topic, text=text)
        self.stdout.write(f"{'Learned' if is_new else 'Already known'}: {topic}: {text}")
