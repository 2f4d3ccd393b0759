"""The jobs that a test has enqueued, and assertions about them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from pydantic import BaseModel

from jobqueue import backends
from jobqueue.api.functions import find
from jobqueue.api.handler import Handler
from jobqueue.errors import PayloadInvalid, duration
from jobqueue.handlers.keys import typed
from jobqueue.handlers.registry import JobType
from jobqueue.policy.retry import Seconds
from jobqueue.records import Filter, JobRecord
from jobqueue.testing.difference import Likeness, likeness

#: More jobs than a test has.
_MANY = 10_000

AnyHandler: TypeAlias = "str | Handler[..., Any, ...]"
_Likenesses: TypeAlias = list[tuple[JobRecord, Likeness]]


def enqueued_jobs(handler: AnyHandler | None = None) -> list[JobRecord]:
    """Return the jobs that are stored, whatever their status, in the order in which they were enqueued.

    With a handler or the name of a job type, return only its jobs. Raises UnknownJobType, with the nearest names.
    """
    if handler is None:
        return backends.current().jobs.find(Filter(), _MANY)
    kind = find(handler).job_type
    return backends.current().jobs.find(Filter(types=frozenset({kind.name, *kind.aliases})), _MANY)


def assert_enqueued(handler: AnyHandler, /, *args: Any, **payload: Any) -> JobRecord:
    """Assert that a job is stored that has at least the given payload, and return the newest one.

    Takes the arguments of ``enqueue``, or some of the payload's fields. Options are compared if the handler names them:
    ``assert_enqueued(resize.using(queue="images"), image_id=7)``. Otherwise the message shows how the nearest job
    differs. Raises UnknownJobType for an unknown name, and InvalidOption for an unknown field.
    """
    target = find(handler)
    found = _alike(target, args, payload)
    equal = [job for job, like in found if like.is_equal]
    if not equal:
        raise AssertionError(_missing(target, found))
    return equal[-1]


def assert_not_enqueued(handler: AnyHandler, /, *args: Any, **payload: Any) -> None:
    """Assert that no job is stored that has at least the given payload. Takes the arguments of ``assert_enqueued``."""
    target = find(handler)
    equal = [job for job, like in _alike(target, args, payload) if like.is_equal]
    if equal:
        lines = [f"  {job.id} {job.status} in {job.queue!r}: {json.dumps(job.payload, default=str)}" for job in equal]
        raise AssertionError("\n".join([f"{_jobs(len(equal), target)} stored:", *lines]))


def _alike(target: Handler[..., Any, ...], args: tuple[Any, ...], given: Mapping[str, Any]) -> _Likenesses:
    """Return each job of the handler's type, and how it compares with what is wanted."""
    kind = target.job_type
    payload, options = _wanted_payload(kind, args, given), _wanted_options(target)
    wanted = _as_options(options) | payload
    return [
        (job, likeness(wanted, _as_options({name: _option_of(job, name) for name in options}) | _payload_of(kind, job)))
        for job in enqueued_jobs(target)
    ]


def _wanted_payload(kind: JobType, args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    whole = kind.signature.payload_of(args, given) if args else given
    if isinstance(whole, BaseModel):
        return dict(whole)
    return typed(kind.signature.form, whole)  # type: ignore[arg-type]  # a dict of fields


def _payload_of(kind: JobType, job: JobRecord) -> dict[str, Any]:
    """Return a job's payload as its handler gets it, or as it is stored if the handler can't read it."""
    try:
        payload = kind.payload.load(json.dumps(job.payload), job.payload_version)
    except PayloadInvalid:
        payload = job.payload
    return dict(payload) if isinstance(payload, (BaseModel, dict)) else {}


def _wanted_options(target: Handler[..., Any, ...]) -> dict[str, Any]:
    """Return the options that ``using`` has changed, as a job keeps them."""
    own, usual = vars(target.options), vars(target.job_type.options)
    changed = {name: value for name, value in own.items() if value != usual[name]}
    if "scheduled_at" in changed:
        changed.pop("delay", None)  # the moment stands in its place
    return {name: _length(name, value) if name in ("delay", "timeout") else value for name, value in changed.items()}


def _length(name: str, value: Seconds | None) -> timedelta | None:
    return None if value is None else duration(value, name)


def _option_of(job: JobRecord, name: str) -> Any:
    return job.scheduled_at - job.created_at if name == "delay" else getattr(job, name)


def _as_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under names that no field of a payload has."""
    return {f"option {name}": value for name, value in values.items()}


def _missing(target: Handler[..., Any, ...], found: _Likenesses) -> str:
    if found:
        job, like = max(found, key=lambda one: one[1].equal)
        return (
            f"{_jobs(len(found), target)} stored, but none with these values. The nearest is {job.id}, {job.status} in "
            f"{job.queue!r} (- wanted, + stored):\n{like.text}"
        )
    others = Counter(job.type for job in enqueued_jobs())
    told = ", ".join(f"{count} {name}" for name, count in sorted(others.items())) or "none"
    return f"No job {target.name!r} is stored. Stored jobs: {told}."


def _jobs(count: int, target: Handler[..., Any, ...]) -> str:
    return f"{count} job{'s' if count != 1 else ''} {target.name!r} {'are' if count != 1 else 'is'}"
