"""The traces of calls that store jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from jobqueue.records import Admission, Draft, DraftReceipt
from jobqueue.tracing import headers
from jobqueue.tracing.tracer import Publication, Tracer, harmless, in_use

Receipts = TypeVar("Receipts", bound=Sequence[DraftReceipt])


def publish(drafts: Sequence[Draft], store: Callable[[Sequence[Draft]], Receipts]) -> Receipts:
    """Store drafts, and trace it if a tracer is in use. The jobs then continue the trace."""
    tracers = in_use()
    return _publish(tracers, drafts, store) if tracers and drafts else store(drafts)


def follow_up(draft: Draft) -> Draft:
    """Trace a follow-up job, which is stored with its parent's completion. Return its draft with the trace."""
    traced = [draft]

    def keep(drafts: Sequence[Draft]) -> list[DraftReceipt]:
        traced[:] = drafts
        return [DraftReceipt(draft.id, Admission.CREATED)]

    publish(traced, keep)
    return traced[0]


def _publish(
    tracers: Sequence[Tracer], drafts: Sequence[Draft], store: Callable[[Sequence[Draft]], Receipts]
) -> Receipts:
    begun = [one for one in (harmless(partial(tracer.publish, drafts)) for tracer in tracers) if one is not None]
    receipts: Sequence[DraftReceipt] = ()
    failed: BaseException | None = None
    try:
        stored = store(harmless(lambda: _with_headers(drafts, begun)) or drafts)
        receipts = stored
        return stored
    except BaseException as error:
        failed = error
        raise
    finally:
        for one in reversed(begun):
            harmless(partial(one.end, receipts, failed))


def _with_headers(drafts: Sequence[Draft], begun: Sequence[Publication]) -> list[Draft]:
    found = headers.joined(one.headers for one in begun)
    contexts: dict[str | None, str | None] = {}  # the drafts of one call usually have the same
    for draft in drafts:
        if draft.context not in contexts:
            contexts[draft.context] = headers.within(draft.context, found)
    return [replace(draft, context=contexts[draft.context]) for draft in drafts]
