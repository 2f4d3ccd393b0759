"""The base class of the tool's commands."""

from __future__ import annotations

from typing import ClassVar

from jobqueue.contrib.commands import AsyncCommand
from jobqueue.handlers.typed_options import JobOptions

#: The queue of the tool. It is ordered, so commands run in the order in which they were typed.
QUEUE = "knowledge"


class KnowledgeCommand(AsyncCommand):
    """A command that waits for all earlier ones, and that all later ones wait for."""

    job_options: ClassVar[JobOptions] = {"queue": QUEUE}


class ParallelCommand(KnowledgeCommand):
    """A command that may run beside other parallel ones."""

    job_options: ClassVar[JobOptions] = {"queue": QUEUE, "parallel": True}
