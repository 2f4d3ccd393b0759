"""``manage.py summarise``: summarise what is known by now, that is, by all commands that were typed before."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import Any

from django.db import transaction

from example_project.knowledge.command import KnowledgeCommand
from example_project.knowledge.models import Fact, Summary

#: The most frequent words of a topic that a summary has.
WORDS = 5
_WORD = re.compile(r"\w{4,}")


class Command(KnowledgeCommand):
    """Replaces all summaries."""

    help = "Summarise the facts of each topic."

    def handle(self, *_: Any, **__: Any) -> None:
        facts = Fact.objects.order_by("topic", "id").values_list("topic", "text")
        made = [_summary(topic, [text for _, text in several]) for topic, several in groupby(facts, lambda one: one[0])]
        with transaction.atomic():
            Summary.objects.all().delete()
            Summary.objects.bulk_create(made)
        for one in made:
            self.stdout.write(f"{one}: {', '.join(one.words)}")


def _summary(topic: str, texts: list[str]) -> Summary:
    counted = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    return Summary(topic=topic, facts=len(texts), words=[word for word, _ in counted.most_common(WORDS)])
