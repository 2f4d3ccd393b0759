"""The delay of certain messages for longer than a short lease can wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django.apps import AppConfig

from jobqueue.worker.protocol.wire import Inbox, Word

SECONDS = 3.7


class SluggishConfig(AppConfig):
    """Changes how messages are read."""

    name = "tests.worker.sluggish"

    def ready(self) -> None:
        feed = Inbox.feed

        def feed_slowly(inbox: Inbox, data: bytes) -> Iterator[tuple[Word, Any]]:
            if b"take your time" in data and b"assign" not in data:
                time.sleep(SECONDS)
            yield from feed(inbox, data)

        Inbox.feed = feed_slowly  # type: ignore[method-assign]
