"""The ``OPTIONS`` of an alias in ``TASKS``: defaults for its tasks, and options of single ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from jobqueue.contrib.django_tasks import priorities
from jobqueue.errors import JobQueueError
from jobqueue.handlers.job_options import aliases_of, lease_of, policy_of
from jobqueue.handlers.options import Options
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.retry import Exponential, Fixed, RetryPolicy

#: The options that an alias gives to all of its tasks, or to single ones.
_OF_TASKS = ("max_attempts", "backoff", "timeout", "lease")
_OF_ONE_TASK = (*_OF_TASKS, "aliases")
_OF_AN_ALIAS = (*_OF_TASKS, "modules", "priorities", "tasks")


@dataclass(frozen=True, slots=True)
class AliasOptions:
    """The options of one alias. ``AliasOptions.of()`` validates them."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    levels: Mapping[int, int] | None = None
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: object) -> AliasOptions:
        """Return the options. Raise ValueError, in one sentence, if they are wrong."""
        for mistake in mistakes(given):
            raise ValueError(mistake)
        known: dict[str, Any] = given if isinstance(given, dict) else {}
        return cls(
            {name: known[name] for name in _OF_TASKS if name in known},
            tuple(known.get("modules", ())),
            priorities.levels(known["priorities"]) if "priorities" in known else None,
            known.get("tasks", {}),
        )

    def of_task(self, path: str) -> Mapping[str, Any]:
        """Return what applies to a task unless its own code says otherwise."""
        return {**self.defaults, **self.tasks.get(path, {})}


def mistakes(given: object) -> Iterator[str]:
    """Yield a sentence for each mistake in ``OPTIONS``."""
    if not isinstance(given, dict):
        yield f"OPTIONS must be a dict, not {type(given).__name__}."
        return
    yield from _unknown(given, _OF_AN_ALIAS, "OPTIONS")
    yield from _wrong({name: given[name] for name in _OF_TASKS if name in given}, "OPTIONS")
    if not _is_names(given.get("modules", ())):
        yield "OPTIONS['modules'] must be a list of module names."
    if "priorities" in given and not _is_levels(given["priorities"]):
        yield (
            f"OPTIONS['priorities'] must list whole numbers from -100 to 100, at most {priorities.MOST_ABOVE} of them "
            f"above 0 and {priorities.MOST_BELOW} below."
        )
    tasks = given.get("tasks", {})
    if not isinstance(tasks, dict) or not all(isinstance(one, dict) for one in tasks.values()):
        yield "OPTIONS['tasks'] must be a dict of dicts, by the path of the task."
        return
    for path, options in tasks.items():
        yield from _unknown(options, _OF_ONE_TASK, f"OPTIONS['tasks'][{path!r}]")
        yield from _wrong(options, f"OPTIONS['tasks'][{path!r}]")


def _unknown(given: Mapping[Any, Any], known: tuple[str, ...], where: str) -> Iterator[str]:
    for name in given:
        if name not in known:
            yield f"{where} has the unknown key {name!r}. {did_you_mean(str(name), known)}"


def _wrong(given: Mapping[str, Any], where: str) -> Iterator[str]:
    try:
        options_of(given)
        policy_with(given.get("backoff"))
        lease_of(given.get("lease"))
        aliases_of(given.get("aliases", ()))
    except (JobQueueError, TypeError, ValueError) as error:
        yield f"{where} is wrong: {error}"


def _is_names(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) and one for one in value)


def _is_levels(value: object) -> bool:
    if not isinstance(value, (list, tuple)) or not all(type(one) is int and -100 <= one <= 100 for one in value):
        return False
    above, below = ({one for one in value if one > 0}, {one for one in value if one < 0})
    return len(above) <= priorities.MOST_ABOVE and len(below) <= priorities.MOST_BELOW


def options_of(given: Mapping[str, Any]) -> Options:
    """Return the options of a task's jobs. Without ``max_attempts`` there is one attempt: tasks may not be repeatable.

    Raises InvalidOption.
    """
    attempts = given.get("max_attempts")
    return Options(max_retries=1 if attempts is None else attempts, timeout=given.get("timeout"))


def policy_with(backoff: Any) -> RetryPolicy:
    """Return the retry policy of a task. Raises InvalidHandler and InvalidOption."""
    if isinstance(backoff, (int, float, timedelta)) and not isinstance(backoff, bool):
        backoff = Fixed(backoff)
    return policy_of(Exponential() if backoff is None else backoff, (BaseException,), ())
