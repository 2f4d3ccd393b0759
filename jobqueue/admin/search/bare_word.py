"""What a bare word in the search box means: the first of what it could be that there is."""

from __future__ import annotations

from jobqueue import conf
from jobqueue.admin.search import plan
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.records import Filter

#: Short of it, nearly every id begins so.
SHORTEST_BEGINNING = 4


def meant(word: str) -> Filter:
    """Take a word for a whole id, a whole key, the beginning of an id, a whole type or a whole tenant."""
    alias = conf.get("DATABASE")
    if found := named(word):
        return found
    start = word.upper()
    if len(start) >= SHORTEST_BEGINNING and plan.is_beginning(start):
        like_it = plan.beginning(Job.objects.using(alias), start).filter(pk__startswith=start)
        if like_it.order_by("-pk").values("pk")[:1]:
            return Filter(id_prefix=start)
    as_type = Filter(types=frozenset({word}))
    if word in registry.names:
        return as_type
    newest = plan.stretch(alias, Filter()).of(Job.objects.using(alias).filter(type=word))
    return as_type if newest.order_by("-pk").values("pk")[:1] else Filter(tenant=word)


def named(word: str) -> Filter | None:
    """Take a word for a whole id or a whole key, if there is one."""
    rows = Job.objects.using(conf.get("DATABASE"))
    if rows.filter(pk=word).exists():
        return Filter(ids=frozenset({word}))
    return Filter(idempotency_key=word) if rows.filter(idempotency_key=word).exists() else None
