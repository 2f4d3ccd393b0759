"""The limits of queues and job types as pages show them: the number in force, what is in use, and who set it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.utils.formats import number_format
from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.base import address, counted
from jobqueue.backends import current
from jobqueue.models.pause import SCOPE_LABELS
from jobqueue.observe.limits import LimitState, limit_states
from jobqueue.records import Limit, LimitUse, Scope

#: How many values of a key are shown.
USES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRow:
    """A limit in force. ``in_code`` and ``set_by`` are empty if it isn't in code, or nobody set it at run time."""

    scope: Any
    name: str
    number: str
    key: str
    in_code: str
    set_by: str
    reason: str
    uses: Sequence[str]
    more: str
    is_used_up: bool
    set_address: str
    unset_address: str


def rows(of: admin.ModelAdmin[Any], queues: Sequence[str], types: Sequence[str] | None = None) -> list[LimitRow]:
    """List the limits of queues and of types, or of all types."""
    states = limit_states(current(), queues)
    return [
        _row(of, one)
        for one in states
        if (one.limit.name in queues if one.limit.scope is Scope.QUEUE else types is None or one.limit.name in types)
    ]


def _row(of: admin.ModelAdmin[Any], state: LimitState) -> LimitRow:
    limit, stored = state.limit, state.stored
    set_by = ""
    if stored is not None:
        about = {"author": display.clean(stored.author), "ago": display.ago(stored.stored_at)}
        set_by = gettext("%(author)s, %(ago)s") % about if stored.author else about["ago"]
    return LimitRow(
        scope=dict(SCOPE_LABELS)[limit.scope.value],
        name=limit.name,
        number=words(limit),
        key=display.clean(limit.key),
        in_code="" if state.in_code is None else counted(state.in_code),
        set_by=set_by,
        reason=display.clean(stored.reason) if stored else "",
        uses=[_use(one) for one in state.uses[:USES_SHOWN]],
        more="…" if len(state.uses) > USES_SHOWN else "",
        is_used_up=any(one.is_used_up for one in state.uses),
        set_address=of_limit(of, "limit", limit),
        unset_address=of_limit(of, "unlimit", limit) if stored else "",
    )


def words(limit: Limit) -> str:
    """Say how many jobs a limit lets run or start."""
    about = {"number": counted(limit.number), "per": number_format(f"{limit.per:g}")}
    return (gettext("%(number)s in %(per)s s") if limit.per else gettext("%(number)s at once")) % about


def _use(one: LimitUse) -> str:
    text = f"{display.clean(one.value)}: {counted(one.used)}" if one.limit.key else counted(one.used)
    if one.next_start is None:
        return text
    about = {"use": text, "length": display.duration(one.next_start.total_seconds())}
    return gettext("%(use)s, the next start in %(length)s") % about


def of_limit(of: admin.ModelAdmin[Any], page: str, limit: Limit) -> str:
    """Return the address of the page that sets or unsets a limit."""
    query = {"scope": limit.scope.value, "name": limit.name, "kind": limit.kind.value}
    query |= {"per": f"{limit.per:g}"} if limit.per else {}
    query |= {"key": limit.key} if limit.key else {}
    return f"{address(of, page)}?{urlencode(query, errors='replace')}"


def of_target(of: admin.ModelAdmin[Any], scope: Scope, name: str) -> str:
    """Return the address of the page that sets a new limit of a queue or type."""
    return f"{address(of, 'limit')}?{urlencode({'scope': scope.value, 'name': name}, errors='replace')}"
