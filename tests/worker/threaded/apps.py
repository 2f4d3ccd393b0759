"""A thread that lives as long as its process."""

from __future__ import annotations

import threading

from django.apps import AppConfig


class ThreadedConfig(AppConfig):
    """Begins to watch, before anything else can happen."""

    name = "tests.worker.threaded"

    def ready(self) -> None:
        threading.Thread(target=threading.Event().wait, name="agent", daemon=True).start()
