"""What is not as it should be, in words, each with the page where something can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NamedTuple

from django.utils.translation import gettext, ngettext

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.base import counted
from jobqueue.admin.dashboard.snapshot import Snapshot, takes
from jobqueue.backends import current
from jobqueue.backends.outbox import Outbox
from jobqueue.backends.sql import SqlBackend
from jobqueue.records import Depth, Scope
from jobqueue.states import JobStatus

#: A due job that has waited so long does not just wait for its turn.
OLD = timedelta(hours=1)

#: Says where the list of an entry is that shows what is named; empty where the site has no such entry.
Address = Callable[..., str]


class Finding(NamedTuple):
    """One sentence, and the way to where it can be acted on."""

    text: str
    address: str
    link: str
    is_grave: bool = False


def findings(seen: Snapshot, address: Address) -> list[Finding]:
    """Say what is not as it should be, the worst first."""
    if conf.get("RELAY_TO") is not None:  # nobody is to run them here
        return [*_lost(seen, address), *_paused(seen, address)]
    return [*_nobody(seen, address), *_paused(seen, address), *_old(seen, address)]


def _lost(seen: Snapshot, address: Address) -> Iterator[Finding]:
    """Say that what is to be relayed waits for a shared database that is out of reach."""
    backend = current()
    outbox = Outbox(backend).waiting() if isinstance(backend, SqlBackend) else None
    if outbox is not None and outbox.count and outbox.lost_at is not None:
        text = ngettext(
            "The shared database has been out of reach for %(length)s: %(count)s job waits to be relayed.",
            "The shared database has been out of reach for %(length)s: %(count)s jobs wait to be relayed.",
            outbox.count,
        )
        length = display.length(max(seen.now - outbox.lost_at, timedelta(0)))
        where = address("job", status=JobStatus.QUEUED.value)
        words = {"count": counted(outbox.count), "length": length}
        yield Finding(text % words, where, gettext("Show them"), is_grave=True)


def _nobody(seen: Snapshot, address: Address) -> Iterator[Finding]:
    """Say which jobs wait for a worker that there is not."""
    waiting = [one for one in seen.depths if one.queued]
    if seen.alive:
        yield from _unserved([one for one in waiting if not _is_served(seen, one)], seen, address)
    elif waiting:
        count = sum(one.queued for one in waiting)
        text = ngettext(
            "%(count)s job waits, and no worker is up. Start one with manage.py runworker.",
            "%(count)s jobs wait, and no worker is up. Start one with manage.py runworker.",
            count,
        )
        words = {"count": counted(count, seen.capped)}
        yield Finding(text % words, address("worker"), gettext("Workers"), is_grave=True)


def _unserved(rows: list[Depth], seen: Snapshot, address: Address) -> Iterator[Finding]:
    known = {name for worker in seen.alive if takes(worker) for name in worker.types}
    for name in dict.fromkeys(row.type for row in rows if row.type not in known):
        of_it = [row for row in rows if row.type == name]
        text = gettext("No live worker takes jobs of type %(type)s: %(count)s wait.")
        yield _waiting(text, of_it, address, type=name)
    for row in rows:
        if row.type in known:
            text = gettext("No live worker takes jobs of type %(type)s from the queue %(queue)s: %(count)s wait.")
            yield _waiting(text, [row], address, type=row.type, queue=row.queue)


def _waiting(text: str, rows: list[Depth], address: Address, **names: str) -> Finding:
    count = counted(sum(row.queued for row in rows), any(row.capped for row in rows))
    where = address("job", status=JobStatus.QUEUED.value, **names)
    return Finding(text % {"count": count, **names}, where, gettext("Show them"), is_grave=True)


def _is_served(seen: Snapshot, row: Depth) -> bool:
    return any(takes(worker, row.queue, row.type) for worker in seen.alive)


def _paused(seen: Snapshot, address: Address) -> Iterator[Finding]:
    for one in seen.pauses:
        length = display.length(max(seen.now - one.paused_at, timedelta(0)))
        words = {"name": one.name, "since": display.exactly(one.paused_at), "length": length}
        text = {
            Scope.QUEUE: gettext("The queue %(name)s has been paused for %(length)s, since %(since)s"),
            Scope.TYPE: gettext("The job type %(name)s has been paused for %(length)s, since %(since)s"),
        }[one.scope]
        reason = f": {display.clean(one.reason)}" if one.reason else "."
        yield Finding(f"{text % words}{reason}", address("queue"), gettext("Queues"))


def _old(seen: Snapshot, address: Address) -> Iterator[Finding]:
    """Say where due jobs wait for long, though nothing that was said already explains it."""
    for row in seen.depths:
        if row.oldest_due_at is None or row.paused or not _is_served(seen, row):
            continue
        if (waited := seen.now - row.oldest_due_at) >= OLD:
            words = {"type": row.type, "queue": row.queue, "length": display.length(waited)}
            text = gettext("A job of type %(type)s in the queue %(queue)s has been due for %(length)s.") % words
            where = address("job", status=JobStatus.QUEUED.value, type=row.type, queue=row.queue)
            yield Finding(text, where, gettext("Show them"))
