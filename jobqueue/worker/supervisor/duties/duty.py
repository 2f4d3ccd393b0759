"""The base class of duties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from jobqueue.worker.supervisor.context import WorkerContext


class Duty(ABC):
    """Periodic work. Two workers must be able to do it at once, even if one of them was frozen meanwhile.

    The supervisor does it, and also renews leases, so a turn must take only some milliseconds. A duty with more to do
    asks to be called again soon. It calls the backend directly, and raises if it fails.
    """

    #: The name that operators see. It is also the key of an elected duty's row.
    name: ClassVar[str]
    #: The seconds from one turn to the next, unless ``act`` says otherwise. For an elected duty, this is also the most.
    every: float
    #: Whether one worker does it for all. Otherwise each worker does it.
    is_elected: ClassVar[bool] = False

    def __init__(self, context: WorkerContext) -> None:
        self.context = context

    @property
    def is_wanted(self) -> bool:
        """Return whether the settings ask for this duty. It is asked when the worker starts."""
        return True

    @abstractmethod
    def act(self) -> float | None:
        """Do one turn. Return the seconds to the next one, for example to an exact moment; ``None`` means ``every``."""
