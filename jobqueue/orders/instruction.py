"""The instruction of an order: what to do, who wants it, and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from jobqueue.handlers.options import NAME_LENGTH, REASON_LENGTH
from jobqueue.records import Amendment

#: The type of the jobs that carry out orders.
TYPE = "jobqueue.operate"
#: A thousand a second. Anything faster is as good as all at once.
MOST_PER_MINUTE = 60_000
_MINUTE = timedelta(minutes=1)


class Instruction(BaseModel):
    """What an operator wants to do to jobs. Only the fields that the verb takes are set.

    ``of_staff`` says whether the user was staff when the order was given. Only then must they still be staff later:
    an admin site may also let in other users.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    verb: Literal["retry", "run_now", "reschedule", "prioritise", "move", "cancel", "purge"]
    user_id: str
    user_name: str
    of_staff: bool = False
    why: Annotated[str, StringConstraints(max_length=REASON_LENGTH)] = ""
    per_minute: Annotated[int, Field(ge=1, le=MOST_PER_MINUTE)] | None = None
    scheduled_at: AwareDatetime | None = None
    priority: Annotated[int, Field(ge=1, le=10)] | None = None
    queue: Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH)] | None = None

    @property
    def every(self) -> timedelta:
        """The interval at which retried jobs become due."""
        return timedelta(0) if self.per_minute is None else _MINUTE / self.per_minute

    @property
    def amendment(self) -> Amendment:
        """The change to queued jobs."""
        return Amendment(
            queue=self.queue,
            priority=self.priority,
            scheduled_at=self.scheduled_at,
            now=self.verb == "run_now",
        )

    def user(self) -> Any:
        """Load the user who gave it, or ``None`` if they no longer exist."""
        try:
            return get_user_model()._default_manager.filter(pk=self.user_id).first()
        except (
            ValueError,
            ValidationError,
        ):  # the project has changed its user model, and its keys are of another type
            return None
