"""The jobs that a test has enqueued, and assertions about them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from pydantic import BaseModel

from jobqueue import backends
from jobqueue.api.functions import find
from jobqueue.api.handler import Handler
from jobqueue.errors import PayloadInvalid
from jobqueue.handlers.keys import typed
from jobqueue.handlers.options import Options
from jobqueue.handlers.registry import JobType
from jobqueue.records import Filter, JobRecord
from jobqueue.testing.difference import Likeness, likeness

#: More jobs than a test has.
_MANY = 10_000

AnyHandler: TypeAlias = "str | Handler[..., Any, ...]"


def enqueued_jobs(handler: AnyHandler | None = None) -> list[JobRecord]:
    """Return the jobs that are stored, whatever their status, in the order in which they were enqueued.

    With a handler or the name of a job type, return only its jobs. Raises UnknownJobType, with the nearest names.
    """
    wanted = Filter() if handler is None else Filter(types=frozenset(_names(find(handler).job_type)))
    return backends.current().jobs.find(wanted, _MANY)


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
    jobs = enqueued_jobs(target)
    return [(job, likeness(options | payload, _told(kind, job, options))) for job in jobs]


_Likenesses = list[tuple[JobRecord, Likeness]]


def _wanted_payload(kind: JobType, args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    whole = kind.signature.payload_of(args, given) if args else given
    if isinstance(whole, BaseModel):
        return dict(whole)
    return typed(kind.signature.form, whole)  # type: ignore[arg-type]  # a dict of fields


def _wanted_options(target: Handler[..., Any, ...]) -> dict[str, Any]:
    """Return the options that were changed by ``using``."""
    own, usual = target.options, target.job_type.options
    changed = {one.name: getattr(own, one.name) for one in fields(Options)}
    return {_option(name): value for name, value in changed.items() if value != getattr(usual, name)}


def _told(kind: JobType, job: JobRecord, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's payload as its handler gets it, and the wanted options."""
    try:
        payload = kind.payload.load(json.dumps(job.payload), job.payload_version)
    except PayloadInvalid:
        payload = job.payload
    told = dict(_options_of(job, options))
    return told | (dict(payload) if isinstance(payload, (BaseModel, dict)) else {})


def _options_of(job: JobRecord, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    values = {"delay": job.scheduled_at - job.created_at} | {
        one.name: getattr(job, one.name) for one in fields(Options) if one.name != "delay"
    }
    for name, value in values.items():
        if _option(name) in options:
            wanted = options[_option(name)]
            seconds = not isinstance(wanted, type(value)) and hasattr(value, "total_seconds")
            yield _option(name), value.total_seconds() if seconds else value


def _option(name: str) -> str:
    """Return the name of an option, which a field of the payload may have too."""
    return f"option {name}"


def _names(kind: JobType) -> tuple[str, ...]:
    return (kind.name, *kind.aliases)


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
