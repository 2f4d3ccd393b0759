"""The checks of the handlers: long and divided transactions, payloads with secrets, versions without an upgrader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from math import floor
from typing import Any, get_args

from django.core.checks import CheckMessage, register
from django.core.checks import Warning as Caution
from django.db import DEFAULT_DB_ALIAS, connections
from pydantic import BaseModel

from jobqueue import conf, queues
from jobqueue.checks.environment import told
from jobqueue.handlers.limits import fields_of, stored_name
from jobqueue.handlers.registry import JobType, registry
from jobqueue.policy.leases import LONGEST_LEASE
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.redaction import is_secret_name
from jobqueue.worker.options import WorkerOptions

_FLAG = {bool, type(None)}
_NUMBER = {int, float, *_FLAG}


@register(conf.CHECKS)
def check_handlers(**_: Any) -> list[CheckMessage]:
    """Check the options and payloads of the handlers."""
    is_sqlite = _queue_vendor() == "sqlite"
    kinds = sorted(registry, key=lambda kind: kind.name)
    slow = [message for kind in kinds if is_sqlite and kind.atomic for message in _long_transaction(kind)]
    apart = _divided(kinds, conf.get("DATABASE")) if _queue_vendor() else ()
    each = (
        message
        for kind in kinds
        for message in (*_secrets(kind), *_forgotten_version(kind), *_lane(kind), *_turns(kind))
    )
    return [*slow, *apart, *each]


def _queue_vendor() -> str:
    """Return the vendor of the queue's database, or an empty string if the settings are wrong."""
    alias = conf.get("DATABASE") if conf.is_sound() else ""
    return connections[alias].vendor if alias in connections.settings else ""


def _long_transaction(kind: JobType) -> Iterator[CheckMessage]:
    lease = kind.lease or timedelta(seconds=told("LEASE", WorkerOptions().lease))
    if kind.timeout <= lease / 3:
        return
    longer = f", or lease={3 * kind.timeout.total_seconds():g} or more" if kind.timeout <= LONGEST_LEASE / 3 else ""
    yield Caution(
        f"The atomic job type {kind.name!r} may run for {kind.timeout.total_seconds():g} s, more than a third of its "
        f"lease of {lease.total_seconds():g} s. During this time it holds SQLite's only write lock, so its worker "
        "cannot renew leases.",
        hint=f"Give @job timeout={floor(lease.total_seconds() * 10 / 3) / 10:g} or less{longer}.",
        id="jobqueue.W007",
    )


def _divided(kinds: Iterable[JobType], alias: str) -> Iterator[CheckMessage]:
    """Warn about the atomic job types if the queue isn't in the database that handlers write to by default."""
    for kind in kinds:
        if kind.atomic and alias != DEFAULT_DB_ALIAS:
            yield Caution(
                f"The atomic job type {kind.name!r} runs in a transaction of {alias!r}, the queue's database. Its "
                "writes to 'default' are not part of that transaction: they stay if an attempt fails or loses its "
                "lease, and the next attempt writes them again.",
                hint=f"Keep the queue in 'default', or leave out atomic and write a handler that may run twice. If it "
                f"only writes to {alias!r}, silence jobqueue.W010.",
                id="jobqueue.W010",
            )


def _forgotten_version(kind: JobType) -> Iterator[CheckMessage]:
    """Warn about payload versions without an upgrader. Versions below the first upgrader were given up on purpose."""
    version, steps = kind.payload.version, kind.payload.upgraders
    missing = [step for step in range(min(steps, default=version - 1), version) if step not in steps]
    if version > 1 and missing:
        yield Caution(
            f"The job type {kind.name!r} has payload version {version}, but no upgrader from version {missing[0]}: its "
            "stored jobs of that version become dead letters.",
            hint=f"Give @job upgraders={{{missing[0]}: ...}}; silence jobqueue.W011 if there are no such jobs.",
            id="jobqueue.W011",
        )


def _lane(kind: JobType) -> Iterator[CheckMessage]:
    """Warn about options of lanes that have no effect in the type's own queue. A job may still name another queue."""
    if not conf.is_sound():
        return
    queue = kind.options.queue
    ordered = queues.options_of(queue).ordered
    if kind.options.parallel is not None and not ordered:
        yield Caution(
            f"The job type {kind.name!r} has the option parallel, but its queue {queue!r} is not ordered, so "
            "the option has no effect.",
            hint=f"Set JOBQUEUE['QUEUES'][{queue!r}] = {{'ordered': True}}, or leave out parallel.",
            id="jobqueue.W027",
        )
    fields = fields_of(kind.signature.form)
    if not isinstance(ordered, str) or fields is None:
        return
    stored = {name: stored_name(kind.signature.form, name) for name in fields if name != "workspace"}
    if ordered not in stored.values():
        yield Caution(
            f"JOBQUEUE['QUEUES'] orders {queue!r} by {ordered!r}, which is no field of the payload of the job type "
            f"{kind.name!r}: all its jobs share one lane.",
            hint=did_you_mean(stored.get(ordered, ordered), stored.values()) or "Use another queue for this type.",
            id="jobqueue.W028",
        )


def _turns(kind: JobType) -> Iterator[CheckMessage]:
    """Warn about a fair queue whose jobs take turns by a field that the payload doesn't have."""
    if not conf.is_sound():
        return
    queue, known = kind.options.queue, fields_of(kind.signature.form)
    fair = queues.options_of(queue).fair
    if fair and known is not None and fair not in known:
        yield Caution(
            f"The jobs of {queue!r} take turns by {fair!r} in JOBQUEUE['QUEUES'], which is no field of the payload of "
            f"the job type {kind.name!r}: all its jobs share one turn.",
            hint=did_you_mean(fair, known) or "Use another queue for this type.",
            id="jobqueue.W029",
        )


def _secrets(kind: JobType) -> Iterator[CheckMessage]:
    found = sorted(set(_secret_fields(kind.signature.form)))
    if found:
        yield Caution(
            f"The payload of the job type {kind.name!r} has fields that look like secrets: {', '.join(found)}. "
            "Payloads are stored as plain text in the database.",
            hint="Store a reference such as private_key_ref, and fetch the secret when the job runs; silence "
            "jobqueue.W009 if they are not secrets.",
            id="jobqueue.W009",
        )


def _secret_fields(form: Any, path: str = "", above: tuple[Any, ...] = ()) -> Iterator[str]:
    """Yield the dotted names of fields that look like secrets, in a model and its nested models."""
    if not (isinstance(form, type) and issubclass(form, BaseModel)) or form in above:
        return
    for name, field in form.model_fields.items():
        parts = list(_parts(field.annotation))
        if any(map(is_secret_name, filter(None, (name, field.alias)))) and not _is_harmless(name, parts):
            yield path + name
        for part in parts:
            yield from _secret_fields(part, f"{path}{name}.", (*above, form))


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the plain types within an annotation: ``Account`` and ``NoneType`` for ``list[Account | None]``."""
    inner = get_args(annotation)
    if not inner:
        yield annotation
    for one in inner:
        yield from _parts(one)


def _is_harmless(name: str, parts: Sequence[Any]) -> bool:
    """Return whether a field can only hold a flag, or a number of tokens."""
    harmless = _NUMBER if name.lower().endswith("tokens") else _FLAG
    return all(isinstance(part, type) and part in harmless for part in parts)
