"""Which stored jobs and schedules no code here can run: unknown types, newer versions, payloads that don't validate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from jobqueue.backends.base import Backend
from jobqueue.errors import PayloadInvalid, PayloadTooNew
from jobqueue.handlers.registry import JobType, registry
from jobqueue.observe.questions.sample import all_queued, some_of_each
from jobqueue.records.outstanding import QueuedJob

#: How many jobs of each queue and type a sample has, and how many in all.
EACH, MOST = 100, 20_000
#: How many running jobs are looked at.
RUNNING = 5_000
#: How many ids are told of each kind of mistake.
EXAMPLES = 5
#: From how many kinds of mistakes on their words are left out. Other programs may have stored any version.
MOST_KINDS = 500


class Mistake(StrEnum):
    """Why a job or schedule can't be run. The values are stable codes."""

    UNKNOWN_TYPE = "unknown_type"
    VERSION_FROM_FUTURE = "version_from_future"
    PAYLOAD_INVALID = "payload_invalid"
    SCHEDULE_OF_UNKNOWN_TYPE = "schedule_of_unknown_type"
    SCHEDULE_VERSION_FROM_FUTURE = "schedule_version_from_future"
    SCHEDULE_PAYLOAD_INVALID = "schedule_payload_invalid"


_OF_SCHEDULES = {
    Mistake.UNKNOWN_TYPE: Mistake.SCHEDULE_OF_UNKNOWN_TYPE,
    Mistake.VERSION_FROM_FUTURE: Mistake.SCHEDULE_VERSION_FROM_FUTURE,
    Mistake.PAYLOAD_INVALID: Mistake.SCHEDULE_PAYLOAD_INVALID,
}


@dataclass(frozen=True, slots=True)
class Unrunnable:
    """Jobs or schedules of one type with the same mistake. ``why`` has no values of a payload."""

    mistake: Mistake
    type: str
    why: str
    count: int
    examples: list[str]


@dataclass(slots=True)
class Inspection:
    """What was looked at, and what was found. If ``is_part``, there are jobs that were not looked at."""

    jobs: int = 0
    schedules: int = 0
    is_part: bool = False
    _found: dict[tuple[Mistake, str, str], tuple[int, list[str]]] = field(default_factory=dict)

    @property
    def found(self) -> list[Unrunnable]:
        """Return what can't be run, by mistake and type."""
        order = {mistake: place for place, mistake in enumerate(Mistake)}
        return [
            Unrunnable(*name, *said)
            for name, said in sorted(self._found.items(), key=lambda one: (order[one[0][0]], *one[0][1:]))
        ]

    def note(self, mistake: Mistake, job_type: str, why: str, example: str) -> None:
        """Count one more."""
        if len(self._found) >= MOST_KINDS:
            why = ""
        count, examples = self._found.get((mistake, job_type, why), (0, []))
        if len(examples) < EXAMPLES:
            examples.append(example)
        self._found[mistake, job_type, why] = count + 1, examples


def inspect(
    backend: Backend, *, everything: bool, progress: Callable[[int], object] = lambda _number: None
) -> Inspection:
    """Look at schedules, at running jobs, and at queued ones: all of them, or some of each queue and type."""
    seen = Inspection()
    _inspect_schedules(backend, seen)
    for one in backend.outstanding.running(RUNNING):
        seen.jobs += 1
        if one.type not in registry.names:
            seen.note(Mistake.UNKNOWN_TYPE, one.type, "", one.id)
    _inspect_queued(all_queued(backend) if everything else some_of_each(backend, EACH, MOST), seen, progress)
    seen.is_part = seen.is_part and not everything
    return seen


def _inspect_queued(pages: Iterable[list[QueuedJob]], seen: Inspection, progress: Callable[[int], object]) -> None:
    counts: dict[tuple[str, str], int] = {}
    for page in pages:
        for one in page:
            found = _mistake(one.type, one.payload, one.payload_version)
            if found is not None:
                seen.note(found[0], one.type, found[1], one.id)
            counts[one.queue, one.type] = counts.get((one.queue, one.type), 0) + 1
        seen.jobs += len(page)
        progress(seen.jobs)
    seen.is_part = sum(counts.values()) >= MOST or any(count >= EACH for count in counts.values())


def _inspect_schedules(backend: Backend, seen: Inspection) -> None:
    for one in backend.schedules.all():
        if one.left_code_at is None and one.next_at is not None:
            seen.schedules += 1
            found = _mistake(one.type, one.payload, one.payload_version)
            if found is not None:
                seen.note(_OF_SCHEDULES[found[0]], one.type, found[1], one.name)


def _mistake(job_type: str, payload: object, version: int) -> tuple[Mistake, str] | None:
    """Return why a payload can't be run, and in which words. They are few, so that they can be counted."""
    if job_type not in registry.names:
        return Mistake.UNKNOWN_TYPE, ""
    return _mistake_in(registry.get(job_type), payload, version)


def _mistake_in(kind: JobType, payload: object, version: int) -> tuple[Mistake, str] | None:
    try:
        if not isinstance(payload, str):
            raise PayloadInvalid("The stored payload is not text.")
        kind.payload.load(payload, version)
    except PayloadTooNew as error:
        return Mistake.VERSION_FROM_FUTURE, str(error)
    except PayloadInvalid as error:
        return Mistake.PAYLOAD_INVALID, str(error)
    except Exception as error:  # a validator of the project, which fails in a worker too
        return Mistake.PAYLOAD_INVALID, f"Its validation raised {type(error).__name__}."
    return None
