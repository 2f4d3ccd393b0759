"""The seal of an order: its signature with SECRET_KEY.

Being able to write rows is not enough to give orders in an operator's name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from django.core.signing import BadSignature, Signer

from jobqueue import conf
from jobqueue.models import Order, OrderPart

#: The digest of no ids.
NOTHING = ""


def chained(digest: str, ids: Sequence[str]) -> str:
    """Add a part of the ids to a digest."""
    return hashlib.sha256(json.dumps([digest, list(ids)]).encode()).hexdigest()


def seal_of(order: Order, digest: str) -> str:
    """Sign an order and the digest of its ids."""
    return _signer().sign(_facts(order, digest))


def is_genuine(order: Order) -> bool:
    """Return whether the seal belongs to the order and to the ids that are stored for it."""
    digest = NOTHING
    for ids in _parts(order):
        digest = chained(digest, ids)
    try:
        return _signer().unsign(order.seal) == _facts(order, digest)
    except BadSignature:
        return False


def _parts(order: Order) -> Iterable[Sequence[str]]:
    rows = OrderPart.objects.using(conf.get("DATABASE")).filter(order=order.pk).order_by("first")
    return (ids if isinstance(ids, list) else [] for ids in rows.values_list("ids", flat=True).iterator(20))


def _facts(order: Order, digest: str) -> str:
    moments = [None if one is None else one.timestamp() for one in (order.counted_at, order.starts_at)]
    facts = [order.pk, order.verb, order.instruction, order.wanted, order.is_selection, order.total, *moments, digest]
    # A database may rewrite a number: Postgres stores 1e22 as an integer, and -0.0 as 0.0.
    text = json.dumps(json.loads(json.dumps(facts), parse_int=_number, parse_float=_number), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _number(text: str) -> float:
    return float(text) + 0.0


def _signer() -> Signer:
    return Signer(salt="jobqueue.orders.seal")
