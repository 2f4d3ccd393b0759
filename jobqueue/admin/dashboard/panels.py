"""The panels of the dashboard, each with its own markup, so that changed ones can be sent alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import display, live
from jobqueue.admin.base import counted
from jobqueue.admin.dashboard import scales
from jobqueue.admin.dashboard.charts import NOTHING, Chart, Series, areas, bars, lines
from jobqueue.admin.dashboard.snapshot import Snapshot
from jobqueue.admin.dashboard.warnings import Address, warnings
from jobqueue.observe.metrics import Point, Times
from jobqueue.records import COUNTED_TO, Depth, Share
from jobqueue.states import JobStatus

#: The limit of a table, which must not push the rest off the page.
ROWS_SHOWN = 50

#: How attempts end, the best first. The bars are stacked in this order.
OUTCOMES = (
    ("completed", pgettext_lazy("how attempts ended", "completed")),
    ("retried", pgettext_lazy("how attempts ended", "retried")),
    ("dead_lettered", pgettext_lazy("how attempts ended", "dead letters")),
    ("stopped", pgettext_lazy("how attempts ended", "cancelled")),
    ("lost", pgettext_lazy("how attempts ended", "lost")),
)
WINDOW_LABELS = {"hour": _("Last hour"), "day": _("Last day"), "week": _("Last week")}
MINUTE = timedelta(minutes=1)

Points = Sequence[Point]


class Panel(NamedTuple):
    """One panel: its id on the page, heading and markup, and whether it takes the whole width."""

    name: str
    title: str
    body: SafeString
    is_wide: bool = False

    @property
    def digest(self) -> str:
        """A hash of the markup."""
        return live.digest(self.body)


class Tile(NamedTuple):
    """One figure with its label, a note and a link."""

    label: str
    value: str
    note: str = ""
    address: str = ""


class ShareRow(NamedTuple):
    """One type or queue: its jobs now, and what happened in the window."""

    name: str
    address: str
    cells: tuple[str, ...]


def panels(seen: Snapshot, address: Address) -> tuple[Panel, ...]:
    """Make all panels, in the order of the page."""
    found = warnings(seen.health, address)
    of_window = str(WINDOW_LABELS[seen.asked.window.name])
    return (
        Panel("findings", gettext("Needs attention"), _rendered("findings", findings=found), is_wide=True),
        Panel("now", gettext("Now"), _rendered("tiles", tiles=_now(seen, address)), is_wide=True),
        Panel("window", of_window, _rendered("tiles", tiles=_past(seen)), is_wide=True),
        *_charts(seen),
        _shares("types", gettext("By type"), "type", seen.figures.by_type, seen, address),
        _shares("queues", gettext("By queue"), "queue", seen.figures.by_queue, seen, address),
    )


def _rendered(template: str, **context: Any) -> SafeString:
    return render_to_string(f"jobqueue/admin/dashboard/{template}.html", context)


# Single figures


def _now(seen: Snapshot, address: Address) -> Iterator[Tile]:
    queued, due = sum(one.queued for one in seen.depths), sum(one.due for one in seen.depths)
    words = {"due": counted(due), "later": counted(queued - due)}
    note = "" if seen.capped else gettext("%(due)s due, %(later)s later") % words
    jobs = {status: address("job", status=status.value, **seen.asked.names) for status in JobStatus}
    yield Tile(gettext("Queued"), counted(queued, seen.capped), note, jobs[JobStatus.QUEUED])
    yield Tile(gettext("Oldest due job"), NOTHING if seen.oldest is None else display.length(seen.oldest))
    running = counted(seen.in_progress, seen.in_progress >= COUNTED_TO)
    yield Tile(gettext("In progress"), running, "", jobs[JobStatus.IN_PROGRESS])
    dead = counted(seen.dead_letters, seen.is_dead_capped)
    yield Tile(gettext("Dead letters"), dead, "", address("deadletter", **seen.asked.names))
    slots, busy = sum(one.slots for one in seen.alive), sum(one.busy for one in seen.alive)
    note = gettext("%(busy)s of %(slots)s slots busy") % {"busy": counted(busy), "slots": counted(slots)}
    yield Tile(gettext("Workers alive"), counted(len(seen.alive)), note, address("worker"))


def _past(seen: Snapshot) -> Iterator[Tile]:
    figures, total = seen.figures, seen.figures.total
    for name, outcome in OUTCOMES:
        rate = scales.number(getattr(total, name) / (figures.window.length / MINUTE))
        note = gettext("%(count)s per minute") % {"count": rate}
        yield Tile(capfirst(str(outcome)), counted(getattr(total, name)), note)
    yield Tile(gettext("Success rate"), _percent(figures.success))
    for label, times in ((gettext("Waited"), total.waited), (gettext("Ran"), total.ran)):
        rest = {"p95": _brief(times.p95), "p99": _brief(times.p99)}
        yield Tile(f"{label}, p50", _brief(times.p50), gettext("p95 %(p95)s, p99 %(p99)s") % rest)


def _brief(seconds: float | None) -> str:
    return NOTHING if seconds is None else scales.brief(seconds)


def _percent(share: float | None) -> str:
    return NOTHING if share is None else gettext("%(count)s %%") % {"count": number_format(display.percent(share), 1)}


# Charts


def _charts(seen: Snapshot) -> Iterator[Panel]:
    points, window = seen.figures.points, seen.figures.window
    moments = scales.moments([one.begins_at for one in points], window.span)
    # Many values are equal, and each is formatted twice.
    number, brief = cache(scales.number), cache(scales.brief)

    def counts(name: str, title: str, empty: str, series: Sequence[Series], values: Iterable[float]) -> Chart:
        scale = scales.counts(values)
        return Chart(name=name, title=title, moments=moments, scale=scale, say=number, series=series, empty=empty)

    def times(name: str, title: str, empty: str, series: Sequence[Series]) -> Chart:
        scale = scales.seconds(_known(series))
        return Chart(name=name, title=title, moments=moments, scale=scale, say=brief, series=series, empty=empty)

    nothing, no_end = gettext("No data."), gettext("No job ended.")
    rates, depth = _rates(points, window.span), _depths(points)
    ages = [Series("oldest", gettext("oldest due job"), [one.oldest for one in points])]
    waited, ran = _percentiles([one.waited for one in points]), _percentiles([one.ran for one in points])
    stacked = [sum(getattr(one, name) for name, _label in OUTCOMES) / (window.span / MINUTE) for one in points]
    yield _panel(counts("throughput", gettext("Ended per minute"), no_end, rates, stacked), bars)
    yield _panel(counts("depth", gettext("Depth"), nothing, depth, _known(depth)), areas)
    yield _panel(times("waited", gettext("Waiting time"), gettext("No job was started."), waited), lines)
    yield _panel(times("ran", gettext("Running time"), no_end, ran), lines)
    yield _panel(times("oldest", gettext("Age of the oldest due job"), nothing, ages), areas)


def _panel(chart: Chart, draw: Callable[[Chart], SafeString]) -> Panel:
    return Panel(chart.name, chart.title, draw(chart))


def _known(series: Iterable[Series]) -> list[float]:
    return [value for one in series for value in one.values if value is not None]


def _rates(points: Points, span: timedelta) -> list[Series]:
    minutes = span / MINUTE
    return [
        Series(name.replace("_", "-"), str(label), [getattr(one, name) / minutes for one in points])
        for name, label in OUTCOMES
    ]


def _depths(points: Points) -> list[Series]:
    return [
        Series("queued", gettext("queued"), [one.queued for one in points]),
        Series("in-progress", gettext("in progress"), [one.in_progress for one in points]),
    ]


def _percentiles(times: Sequence[Times]) -> list[Series]:
    return [Series(name, name, [getattr(one, name) for one in times]) for name in ("p50", "p95", "p99")]


# Tables


def _shares(name: str, title: str, column: str, shares: Sequence[Share], seen: Snapshot, address: Address) -> Panel:
    """Show for each type or queue its jobs now and what happened in the window, the most frequent first."""
    past = {share.name: share for share in shares}
    live: dict[str, list[Depth]] = {}
    for depth in seen.depths:
        live.setdefault(getattr(depth, column), []).append(depth)
    names = list(dict.fromkeys(chain(past, sorted(live))))
    rows = [
        ShareRow(
            one,
            address("dashboard", **{"window": seen.asked.window.name, **seen.asked.names, column: one}),
            (*_cells_now(live.get(one, [])), *_cells_past(past.get(one))),
        )
        for one in names[:ROWS_SHOWN]
    ]
    heads = [gettext("queued"), gettext("in progress"), *(label for _name, label in OUTCOMES)]
    heads += [gettext("success"), gettext("mean running time")]
    context = {"title": title, "name": name, "heads": heads, "rows": rows, "more": len(names) > ROWS_SHOWN}
    return Panel(name, title, _rendered("shares", **context), is_wide=True)


def _cells_now(rows: Sequence[Depth]) -> tuple[str, str]:
    queued, running = sum(row.queued for row in rows), sum(row.in_progress for row in rows)
    return counted(queued, any(row.capped for row in rows)), counted(running)


def _cells_past(share: Share | None) -> tuple[str, ...]:
    if share is None:
        return (counted(0),) * len(OUTCOMES) + (NOTHING, NOTHING)
    counts = tuple(counted(getattr(share, name)) for name, _label in OUTCOMES)
    return (*counts, _percent(share.success), _brief(share.mean_ran))
