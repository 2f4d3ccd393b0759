"""The tests that others wrote for backends of ``django.tasks``, run on this queue. See ``__main__``."""

from __future__ import annotations
