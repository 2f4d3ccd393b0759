"""Handlers with effects that a test can look at: rows of ``Group``, in the queue's own database."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from pydantic import BaseModel, Field

from jobqueue import Fixed, JobContext, Snooze, conf, job


def groups():
    """The rows of the queue's database, or of the default one for a queue in memory."""
    return Group.objects.using(conf.get("DATABASE"))


def names():
    """What the handlers have brought about."""
    return sorted(groups().values_list("name", flat=True))


class Order(BaseModel):
    number: int = Field(alias="orderNumber")
    price: Decimal = Decimal(1)
    due: datetime = datetime(2026, 1, 1, tzinfo=UTC)


@job("kit.order", queue="parcels")
def order(payload: Order) -> str:
    return f"{payload.number}: {payload.price}"


@job("kit.add")
def add(name: str) -> str:
    return groups().create(name=name).name


@job("kit.add_async")
async def add_async(name: str) -> str:
    return (await groups().acreate(name=name)).name


@job("kit.add_atomic", atomic=True)
def add_atomically(name: str) -> str:
    return groups().create(name=name).name


@job("kit.ensure")
def ensure(name: str, ctx: JobContext) -> None:
    groups().get_or_create(name=name)
    ctx.progress(50, step="half")
    groups().get_or_create(name=f"{name} too")


@job("kit.count")
def count_up(ctx: JobContext) -> None:
    """Adds what is missing in the second half only: a kill between the halves is not made good."""
    if not groups().filter(name="begun").exists():
        groups().create(name="begun")
        groups().create(name="ended")


@job("kit.append")
def append() -> None:
    groups().create(name=f"row {groups().count()}")


@job("kit.follow")
def follow(name: str, ctx: JobContext) -> None:
    ctx.progress(10, name=name)
    ctx.enqueue(add, name=f"{name}, followed")
    add.enqueue(f"{name}, enqueued")


@job("kit.fail", max_retries=3, retry=Fixed(60))
def fail(ctx: JobContext, until: int = 99) -> str:
    if ctx.attempt < until:
        raise OSError(f"disk on fire at attempt {ctx.attempt}")
    return "done"


@job("kit.break_rules")
def break_rules(catch: bool = False) -> None:
    """Violates a constraint, which breaks a transaction on Postgres."""
    groups().create(name="twice")
    try:
        groups().create(name="twice")
    except IntegrityError:
        if not catch:
            raise


@job("kit.nap")
def nap(ctx: JobContext) -> str:
    if ctx.fence == 1:
        raise Snooze(3600)
    return "rested"


@job("kit.forever")
def forever(ctx: JobContext) -> None:
    ctx.enqueue(forever)


@job("kit.durable")
def durable(name: str) -> None:
    with transaction.atomic(using=conf.get("DATABASE"), durable=True):
        groups().get_or_create(name=name)
