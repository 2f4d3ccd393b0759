"""Handlers that use the ORM in all possible ways."""

from __future__ import annotations

import asyncio
import time

from asgiref.sync import sync_to_async
from django.db import transaction

from jobqueue import Fixed, JobContext, job
from tests.documented.shelf.models import Note


@job
def write_note(text: str) -> int:
    return Note.objects.create(text=text).pk


@job
async def write_note_async(text: str) -> int:
    await asyncio.sleep(0.001)
    note = await Note.objects.acreate(text=text)
    return note.pk


@job(atomic=True, timeout=10)
def write_note_atomically(text: str) -> int:
    return Note.objects.create(text=text).pk


@job
def rename_note(text: str, to: str) -> int:
    with transaction.atomic():  # reads first: begun DEFERRED, it cannot wait for other writers
        note = Note.objects.get(text=text)
        note.text = to
        note.save()
    return note.pk


@job
def write_and_follow(ctx: JobContext, text: str) -> None:
    Note.objects.create(text=text)
    ctx.enqueue(write_note, text=f"{text}, followed")
    write_note_async.enqueue(text=f"{text}, enqueued")


@job
def write_slowly(ctx: JobContext, count: int) -> int:
    for number in range(count):
        Note.objects.create(text=f"line {number}")
        ctx.progress(100 * number / count)
        write_note.using(delay=3600).enqueue(text="much later")
        time.sleep(0.025)
    return count


@job(max_retries=3, retry=Fixed(0))
def write_at_second_try(ctx: JobContext, text: str) -> None:
    with transaction.atomic():
        Note.objects.create(text=text)
        if ctx.attempt == 1:
            raise ValueError("not yet")


@job(max_retries=1, timeout=0.3)
def never_end() -> None:
    Note.objects.create(text="began")
    while True:
        time.sleep(0.01)


@job(max_retries=1, timeout=0.3)
async def never_end_async() -> None:
    await sync_to_async(Note.objects.create)(text="began")
    while True:
        await asyncio.sleep(0.01)
