"""How a command or a page writes times, durations and numbers inside the sentences of this room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext


@dataclass(frozen=True, slots=True)
class Wording:
    """The formats of times, durations, distances in time and numbers."""

    moment: Callable[[datetime], str]
    length: Callable[[timedelta], str]
    ago: Callable[[datetime, datetime], str]
    number: Callable[[int], str]

    def when(self, value: datetime | None, now: datetime) -> str:
        """Write a time and how far it is from now."""
        return gettext("at an unknown time") if value is None else f"{self.moment(value)} ({self.ago(value, now)})"

    def since(self, value: datetime | None, now: datetime) -> str:
        """Write how long ago a time was; zero if clocks that disagree put it ahead."""
        return self.length(max(now - (value or now), timedelta(0)))

    def attempts(self, count: int) -> str:
        """Write a number of attempts."""
        return ngettext("%(count)s attempt", "%(count)s attempts", int(count)) % {"count": self.number(count)}

    def percent(self, share: float) -> str:
        """Write a share in whole percent."""
        return gettext("%(count)s %%") % {"count": self.number(round(100 * share))}
