"""The page of one queue: what waits in it now, and how that changed over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import admin
from django.http import QueryDict
from django.utils.translation import gettext

from jobqueue.admin import live
from jobqueue.admin.base import address
from jobqueue.admin.dashboard import scales
from jobqueue.admin.dashboard.charts import Chart, Series, areas, bars
from jobqueue.admin.dashboard.panels import WINDOW_LABELS
from jobqueue.admin.dashboard.snapshot import Asked
from jobqueue.admin.operations import lane_rows, limit_rows, queue_rows
from jobqueue.backends import current
from jobqueue.observe.metrics import Figures, figures
from jobqueue.observe.turns import shares
from jobqueue.records import Scope, TurnShare


class QueuePage(NamedTuple):
    """What the page of a queue was asked for, and what was read for it."""

    asked: Asked
    seen: queue_rows.Seen
    figures: Figures

    @classmethod
    def of(cls, query: QueryDict) -> QueuePage:
        """Read what an address asks for."""
        asked = Asked.of(query)
        return cls(asked, queue_rows.look(), figures(asked.window, asked.queue))

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self.asked.queue

    def windows(self, of: admin.ModelAdmin[Any]) -> list[tuple[Any, str, bool]]:
        """List the windows of time: label, address, and whether it is the one shown."""
        return [
            (label, self.address(of, "one", name), name == self.asked.window.name)
            for name, label in WINDOW_LABELS.items()
        ]

    def address(self, of: admin.ModelAdmin[Any], page: str, window: str = "") -> str:
        """Return the address of a page of this queue."""
        query = {"queue": self.name, "window": window or self.asked.window.name}
        return f"{address(of, page)}?{urlencode(query, errors='replace')}"

    def parts(self, of: admin.ModelAdmin[Any], *, may_pause: bool, may_set: bool) -> list[live.RenderedPart]:
        """Make the parts of the page."""
        shared = {"may_pause": may_pause, "may_set": may_set}
        queue = queue_rows.queue(of, self.seen, self.name)
        lanes = lane_rows.rows(self.name)
        types = [row for row in queue_rows.types(of, self.seen) if row.queue == self.name]
        turns = shares(current(), self.name)
        return [
            live.part("queue", "queue_facts", {**shared, "row": queue}),
            *([live.part("lanes", "lane_table", {"rows": lanes})] if lanes else []),
            *([] if turns is None else [live.part("turns", "turn_table", {"rows": _turn_rows(turns)})]),
            live.RenderedPart("waiting", areas(_chart(self.figures))),
            live.part(
                "types", "queue_table", {**shared, "rows": types, "is_types": True, "label": gettext("Job types")}
            ),
            live.part(
                "limits",
                "limit_table",
                {
                    **shared,
                    "rows": limit_rows.rows(of, [self.name], [row.name for row in types]),
                    "new_address": limit_rows.of_target(of, Scope.QUEUE, self.name),
                },
            ),
            *([live.RenderedPart("shed", bars(_shed_chart(self.figures)))] if queue.shed else ()),
        ]


class TurnRow(NamedTuple):
    """A value by which a fair queue takes turns."""

    key: str
    weight: str
    waiting: str
    running: str
    served: str
    share: str


def _turn_rows(turns: Sequence[TurnShare]) -> list[TurnRow]:
    """Write the shares of turns, of what was served in the last minute."""
    served = sum(one.served for one in turns)
    return [
        TurnRow(
            one.key,
            f"{one.weight:g}",
            f"{scales.number(one.waiting)}{'+' if one.is_capped else ''}",
            scales.number(one.running),
            scales.number(one.served),
            f"{100 * one.served / served:.0f} %" if served else "",
        )
        for one in turns
    ]


def _chart(of: Figures) -> Chart:
    """Make the chart of what waited and ran."""
    series = [
        Series("queued", gettext("waiting"), [one.queued for one in of.points]),
        Series("in-progress", gettext("in progress"), [one.in_progress for one in of.points]),
    ]
    return Chart(
        name="waiting",
        title=gettext("Waiting over time"),
        moments=scales.moments([one.begins_at for one in of.points], of.window.span),
        scale=scales.counts(_known(series)),
        say=scales.number,
        series=series,
        empty=gettext("No data."),
    )


def _shed_chart(of: Figures) -> Chart:
    """Make the chart of what was shed."""
    series = [Series("shed", gettext("shed"), [one.shed for one in of.points])]
    return Chart(
        name="shed",
        title=gettext("Jobs shed"),
        moments=scales.moments([one.begins_at for one in of.points], of.window.span),
        scale=scales.counts(_known(series)),
        say=scales.number,
        series=series,
        empty=gettext("No jobs were shed."),
    )


def _known(series: Sequence[Series]) -> list[float]:
    return [value for one in series for value in one.values if value is not None]
