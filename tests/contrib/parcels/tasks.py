"""Tasks as applications and packages write them, with what they told."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Any

import django

if django.VERSION >= (6,):
    from django.tasks import task
else:
    from django_tasks import task

TOLD: list[Any] = []
DESK = ContextVar("desk", default="")


@task
def weigh(parcel_id, *, unit="kg"):
    TOLD.append((parcel_id, unit))
    return {"parcel": parcel_id, "unit": unit}


@task(priority=10, queue_name="parcels")
async def announce(parcel_id):
    TOLD.append(parcel_id)
    return [parcel_id]


@task
def pack(*args, **kwargs):
    return [list(args), kwargs]


@task(takes_context=True)
def count_attempts(context, needed):
    TOLD.append((context.attempt, context.task_result.id, list(context.task_result.worker_ids)))
    if context.attempt < needed:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task(backend="graded")
def lose(parcel_id):
    raise LookupError(f"parcel {parcel_id} is lost")


@task
def forget():
    return object()


@task
def crash():
    os._exit(3)


@task
async def look_at_desk():
    return DESK.get()
