"""One order: what is to be done, with what, by whom and why. It is data, and travels in a job's payload."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from jobqueue.handlers.options import NAME_LENGTH, REASON_LENGTH
from jobqueue.records import Amendment

#: The type of the jobs that carry large orders out.
TYPE = "jobqueue.operate"
#: A thousand a second: who wants them faster wants them at once.
MOST_PER_MINUTE = 60_000
_MINUTE = timedelta(minutes=1)


class Order(BaseModel):
    """What an operator wants done to jobs. A verb needs its own value; the others stay empty.

    Whether who gave it was of the staff is kept, for a site may let in others, and asks nobody else to stay so.
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
        """How far apart the retried jobs become due."""
        return timedelta(0) if self.per_minute is None else _MINUTE / self.per_minute

    @property
    def amendment(self) -> Amendment:
        """What changes of jobs that wait."""
        return Amendment(
            queue=self.queue,
            priority=self.priority,
            scheduled_at=self.scheduled_at,
            now=self.verb == "run_now",
        )

    def user(self) -> Any:
        """Read who gave it, as they are today; ``None`` where there is no such user any more."""
        try:
            return get_user_model()._default_manager.filter(pk=self.user_id).first()
        except (ValueError, ValidationError):  # keys of another kind, since the project changed its users
            return None
