"""The limits that code declares, and the values of keys, which the producer computes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from jobqueue import conf, queues
from jobqueue.errors import InvalidHandler, InvalidOption
from jobqueue.handlers.options import KEY_LENGTH, UNSEEN
from jobqueue.policy.limits.declared_limits import DeclaredLimit
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.queue_options import options_of
from jobqueue.records import Draft, Limit, Scope

if TYPE_CHECKING:
    from jobqueue.handlers.registry import JobType

#: Keys that are options of a job, not fields of its payload.
OF_JOB = ("tenant", "workspace")


def check_keys(limits: Iterable[DeclaredLimit], form: Any, where: str) -> None:
    """Raise InvalidHandler for a key that is no field of the payload."""
    known = fields_of(form)
    if known is None:
        return
    for one in limits:
        if isinstance(one.key, str) and one.key not in known:
            raise InvalidHandler(
                f"{where} has a limit with the key {one.key!r}, which is no field of its payload. "
                f"{did_you_mean(one.key, known)}"
            )


def fields_of(form: Any) -> list[str] | None:
    """Return what may be a key of a payload's form, or ``None`` if it may have any fields."""
    if not (isinstance(form, type) and issubclass(form, BaseModel)) or form.model_config.get("extra") == "allow":
        return None
    return [*form.model_fields, *OF_JOB]


def stored_name(form: Any, name: str) -> str:
    """Return the name that a field of a payload's form has in stored payloads."""
    is_model = isinstance(form, type) and issubclass(form, BaseModel)
    field = form.model_fields.get(name) if is_model else None
    return name if field is None else field.serialization_alias or field.alias or name


def with_keys(kind: JobType, draft: Draft) -> Draft:
    """Return a draft with the values of the keys of its limits, and of its fair queue.

    What a key function raises goes to the caller.
    """
    options = queues.options_of(draft.queue)
    if options.fair:
        draft = replace(draft, fair_key=_fair_key(options.fair, kind, draft))
    limits = [*kind.limits, *options.limits]
    keyed = {one.key_name: one.key for one in limits if one.key}
    if not keyed:
        return draft
    values = {name: text_of(name, value_of(key, kind, draft)) for name, key in keyed.items()}
    text = json.dumps(
        {name: value for name, value in sorted(values.items()) if value is not None},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    if len(text) > KEY_LENGTH:
        longest = max(values, key=lambda name: len(values[name] or ""))
        raise InvalidOption(
            longest,
            f"is the key of a limit; the keys of a job must have at most {KEY_LENGTH} characters together, "
            f"with their names, got {len(text)}",
        )
    return replace(draft, concurrency_key=text)


def _fair_key(field: str, kind: JobType, draft: Draft) -> str:
    """Return the value by which a fair queue takes turns. Jobs without a value have a turn of their own."""
    return key_of(field, value_of(field, kind, draft), "a fair queue")


def key_of(name: str, value: object, what: str) -> str:
    """Return the value of the only key of a queue as text, or an empty one for no value."""
    text = text_of(name, value, what) or ""
    if len(text) > KEY_LENGTH:
        raise InvalidOption(
            name, f"is the key of {what}, and must have at most {KEY_LENGTH} characters, got {len(text)}"
        )
    return text


def value_of(key: Any, kind: JobType, draft: Draft) -> object:
    """Return the value of a key: a function of the payload, an option of a job, or a field of its payload."""
    if callable(key):
        return key(kind.payload.load(draft.payload, draft.payload_version))
    if key in OF_JOB:
        return getattr(draft, key)
    fields = json.loads(draft.payload)
    form = kind.signature.form
    aliases = form.model_fields if isinstance(form, type) and issubclass(form, BaseModel) else {}
    field = aliases.get(key)
    names = [key] if field is None else [field.serialization_alias, field.alias, key]
    return next((fields[name] for name in names if name in fields), None) if isinstance(fields, dict) else None


def text_of(name: str, value: object, what: str = "a limit") -> str | None:
    """Return the value of the key of a limit or lane as text. ``7`` and ``"7"`` are the same; ``None`` is no value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise InvalidOption(name, f"is the key of {what}, and must be text or a number, got {_kind_of(value)}")
    text = str(value)
    if UNSEEN.search(text):
        raise InvalidOption(name, f"is the key of {what}, and must be one line of visible characters")
    return text


def _kind_of(value: object) -> str:
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


# All declared limits


def declared(kinds: Iterable[JobType]) -> tuple[tuple[Limit, ...], Mapping[str, str], tuple[str, ...]]:
    """Return the limits of types and queues, the names of types by their aliases, and the entries of queues."""
    kinds = list(kinds)
    limits = [one.of(Scope.TYPE, kind.name) for kind in kinds for one in kind.limits]
    entries = conf.get("QUEUES")
    of_queues = [(name, one) for name in entries for one in options_of(name, {name: entries[name]}).limits]
    limits += [one.of(Scope.QUEUE, name) for name, one in of_queues]
    names = {alias: kind.name for kind in kinds for alias in kind.aliases}
    return tuple(limits), names, tuple(entries) if of_queues or queues.own_orders() else ()


def declared_book(kinds: Iterable[JobType]) -> LimitBook:
    """Return the limits in code as a book."""
    limits, names, entries = declared(kinds)
    return LimitBook(limits, names, entries=entries, queue_options=queues.own_orders())
