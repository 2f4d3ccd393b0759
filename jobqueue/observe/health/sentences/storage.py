"""Sentences about the database's storage."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words
from jobqueue.observe.wording import Wording


def _snapshot(one: Finding, wording: Wording, now: datetime) -> str:
    about = {"count": wording.number(one.dead_rows), "holder": one.reason.rstrip(".")}
    if one.since is None:
        return gettext("An old snapshot keeps %(count)s dead rows of the job table: %(holder)s.") % about
    text = gettext("A snapshot held for %(length)s keeps %(count)s dead rows of the job table: %(holder)s.")
    return text % {**about, "length": wording.since(one.since, now)}


def _dead_rows(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The job table has %(count)s dead rows, more than live ones: autovacuum doesn't keep up.")
    return text % {"count": wording.number(one.dead_rows)}


def _log(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("SQLite's write-ahead log has %(size)s MB, because a transaction that reads prevents checkpoints.")
    return text % {"size": wording.number(one.log_size // 2**20)}


WORDS = {
    Cause.SNAPSHOT_HELD: Words(
        _snapshot,
        _snapshot,
        _(
            "End the transaction that holds the snapshot, or wait for its end. Until then, queries read past the dead "
            "rows."
        ),
    ),
    Cause.DEAD_ROWS_KEPT: Words(
        _dead_rows,
        _dead_rows,
        _("Run VACUUM job_queue, and check that autovacuum is on and has workers to spare."),
    ),
    Cause.LOG_LARGE: Words(
        _log,
        _log,
        _("Find the process that reads, and end its transaction."),
    ),
}
