"""The options of jobs and their bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from jobqueue.errors import InvalidOption, duration
from jobqueue.policy.retry import Seconds

NAME_LENGTH = 100
KEY_LENGTH = 255
REASON_LENGTH = 500
#: A bound far above any useful number of attempts.
MOST_RETRIES = 10_000
#: The bounds of moments that can be converted to every time zone.
FIRST_MOMENT, LAST_MOMENT = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

_NAME = re.compile(r"[\w.:/@-]+")
#: Characters that break a line, are invisible, or reverse the direction of writing.
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Options:
    """When, where and how a job runs. Durations are seconds or a timedelta; ``None`` means unset."""

    queue: str = "default"
    priority: int = 5
    max_retries: int = 3
    timeout: Seconds | None = None
    delay: Seconds = timedelta(0)
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    idempotency_key: str | None = None
    unique_key: str | None = None
    tenant: str | None = None
    workspace: str | None = None
    debounce: Seconds | None = None
    max_wait: Seconds | None = None
    replace_payload: bool = False
    throttle: Seconds | None = None
    parallel: bool | None = None

    def __post_init__(self) -> None:
        self._check(_CHECKS)

    def but(self, **changes: Any) -> Options:
        """Return options with changes. Called for each job that has a key of its own, so it must be fast."""
        made = object.__new__(Options)
        made.__dict__.update(self.__dict__, **changes)
        made._check(changes)
        return made

    def _check(self, names: Iterable[str]) -> None:
        values = self.__dict__
        for name in names:
            if values[name] is not _DEFAULTS[name]:
                _CHECKS[name](name, values[name])
        if self.idempotency_key is not None and self.unique_key is not None:
            raise InvalidOption(
                "unique_key",
                "cannot be combined with idempotency_key, which allows only one job anyway",
            )
        if self.scheduled_at is not None and duration(self.delay, "delay"):
            raise InvalidOption("delay", "cannot be combined with scheduled_at")
        if self.debounce is not None or self.max_wait is not None or self.replace_payload or self.throttle is not None:
            self._check_repeats()

    def _check_repeats(self) -> None:
        """Check the options for calls that repeat with the same key."""
        given = "throttle" if self.throttle is not None else "debounce"
        if self.debounce is None and given == "debounce":
            raise InvalidOption("max_wait" if self.max_wait is not None else "replace_payload", "needs debounce")
        if self.unique_key is None:
            raise InvalidOption(given, "needs unique_key, which says which calls belong together")
        if self.throttle is not None and (self.debounce, self.max_wait, self.replace_payload) != (None, None, False):
            raise InvalidOption("throttle", "cannot be combined with debounce")
        if self.debounce is not None:
            self._check_debounce(duration(self.debounce, "debounce"))

    def _check_debounce(self, length: timedelta) -> None:
        if self.max_wait is None:
            raise InvalidOption("max_wait", "must be given with debounce: a job that each call moves might never run")
        if duration(self.max_wait, "max_wait") < length:
            raise InvalidOption("max_wait", "must not be shorter than debounce")
        if self.scheduled_at is not None or duration(self.delay, "delay"):
            raise InvalidOption("debounce", "cannot be combined with delay or scheduled_at")


_DEFAULTS = {one.name: one.default for one in fields(Options)}
OPTION_NAMES = frozenset(_DEFAULTS)


def name(option: str, value: object) -> None:
    """Check the name of a queue or a job type."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidOption(option, f"must be letters, digits and any of _ . : / @ -, got {_shown(value)}")
    _short(option, value, NAME_LENGTH)


def reason(option: str, value: object) -> None:
    """Check an operator's reason, which may be empty."""
    if not isinstance(value, str) or UNSEEN.search(value):
        raise InvalidOption(option, f"must be one line of visible characters, got {_shown(value)}")
    _short(option, value, REASON_LENGTH)


def _text(limit: int) -> Callable[[str, object], None]:
    def check(option: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, str) or not value or _UNPRINTABLE.search(value):
            raise InvalidOption(option, f"must be printable text, got {_shown(value)}")
        _short(option, value, limit)

    return check


def _short(option: str, value: Any, limit: int) -> None:
    if len(value) > limit:
        raise InvalidOption(option, f"must have at most {limit} characters, got {len(value)}")


def _whole(lowest: int, highest: int) -> Callable[[str, object], None]:
    def check(option: str, value: object) -> None:
        if type(value) is not int or not lowest <= value <= highest:
            raise InvalidOption(option, f"must be a whole number from {lowest} to {highest}, got {_shown(value)}")

    return check


def _length(option: str, value: Any) -> None:
    duration(value, option)


def _limit(option: str, value: Any) -> None:
    if value is not None and not duration(value, option):
        raise InvalidOption(option, "must be longer than zero")


def _flag(option: str, value: object) -> None:
    if type(value) is not bool:
        raise InvalidOption(option, f"must be True or False, got {_shown(value)}")


def _choice(option: str, value: object) -> None:
    if value is not None:
        _flag(option, value)


def _moment(option: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, datetime):
        raise InvalidOption(option, f"must be a datetime, got {_shown(value)}")
    if value.tzinfo is None and settings.USE_TZ:
        raise InvalidOption(option, f"must be an aware datetime, got the naive {value!r}; see django.utils.timezone")
    try:
        in_utc(value)
    except (OverflowError, ValueError) as error:
        raise InvalidOption(option, f"must be a moment that exists in every time zone, got {value!r}") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "queue": name,
    "priority": _whole(1, 10),
    "max_retries": _whole(1, MOST_RETRIES),
    "timeout": _limit,
    "delay": _length,
    "scheduled_at": _moment,
    "expires_at": _moment,
    "idempotency_key": _text(KEY_LENGTH),
    "unique_key": _text(KEY_LENGTH),
    "tenant": _text(NAME_LENGTH),
    "workspace": _text(NAME_LENGTH),
    "debounce": _limit,
    "max_wait": _limit,
    "replace_payload": _flag,
    "throttle": _limit,
    "parallel": _choice,
}


def in_utc(moment: datetime | None) -> datetime | None:
    """Return a moment in UTC. A naive one, possible with USE_TZ off, is in the project's time zone."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    moment = moment.astimezone(UTC)
    if not FIRST_MOMENT <= moment <= LAST_MOMENT:
        raise OverflowError("outside the range of some time zones")
    return moment
