"""Charts as SVG, each with a legend and a table of its values.

The markup has no inline styles, because a strict content security policy forbids them. Colours come from classes in
``charts.css``. Textures, dashes and marks distinguish the series without colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from jobqueue.admin.dashboard.scales import Moments, Scale

WIDTH, HEIGHT = 360, 180
TOP, RIGHT, BOTTOM = 10, 12, 22
#: The approximate width of a character of an axis.
CHARACTER = 6.6
#: The texture of each series, in squares of six by six.
TEXTURES = ("", "M-1 1L1-1M0 6L6 0M5 7L7 5", "M0 0L6 6M0 6L6 0M-1 1L1-1M5 7L7 5", "M0 3H6", "M1 1.5H3M4 4.5H6")
DASHES = ("", "5 3", "1.5 2.5")
#: The mark of a single point: a circle, a square, a triangle.
MARKS = ("m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0", "m-2-2h4v4h-4z", "m-2.5 2h5l-2.5-4.5z")
NOTHING = "-"

Values = Sequence[float | None]


class Series(NamedTuple):
    """A series with a value for each span, ``None`` if unknown. Its name is its CSS class."""

    name: str
    label: str
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart. ``name`` is unique on the page, ``say`` formats a value, ``empty`` is the text without values."""

    name: str
    title: str
    moments: Moments
    scale: Scale
    say: Callable[[float], str]
    series: Sequence[Series]
    empty: str


class _Frame(NamedTuple):
    """The plot area of the picture. The value axis is left of it."""

    left: float

    def x(self, share: float) -> float:
        return self.left + share * (WIDTH - RIGHT - self.left)

    def y(self, share: float) -> float:
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def bars(chart: Chart) -> SafeString:
    """Draw a stacked bar for each span."""
    frame, swatch = _frame(chart), '<rect class="jq-s-{}" width="20" height="10" fill="{}"/>'
    swatches = [format_html(swatch, one.name, _fill(chart, place)) for place, one in enumerate(chart.series)]
    some = any(value for one in chart.series for value in one.values)
    return _figure(chart, frame, format_html("{}{}", _textures(chart), _stacks(chart, frame)), swatches, some)


def lines(chart: Chart) -> SafeString:
    """Draw a line for each series, broken where values are unknown."""
    return _lines(chart, filled=False)


def areas(chart: Chart) -> SafeString:
    """Draw a line for each series, and the area below the first."""
    return _lines(chart, filled=True)


def _lines(chart: Chart, *, filled: bool) -> SafeString:
    frame, drawn, swatches = _frame(chart), [], []
    for place, series in enumerate(chart.series):
        path, area, alone = _line(chart, frame, series.values, MARKS[place])
        if filled and place == 0:
            drawn.append(format_html('<path class="jq-area jq-s-{}" fill="currentColor" d="{}"/>', series.name, area))
        drawn.append(_stroke(series.name, place, path, alone))
        swatches.append(_stroke(series.name, place, "M1 5H19", f"M10 5{MARKS[place]}"))
    some = any(value is not None for one in chart.series for value in one.values)
    return _figure(chart, frame, format_html_join("", "{}", ((one,) for one in drawn)), swatches, some)


def sparkline(values: Sequence[float | None], label: str) -> SafeString:
    """Draw small bars without axes; the label describes them."""
    known = [value or 0 for value in values]
    most, step = max(known, default=0), 100 / max(len(known), 1)
    path = "".join(
        f"M{place * step:.4g} 23h{step * 0.8:.3g}V{23 - max(22 * value / most, 1):.4g}h{-step * 0.8:.3g}z"
        for place, value in enumerate(known)
        if value > 0
    )
    picture = (
        '<svg class="jq-spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img"><title>{}</title>'
        '<path class="jq-floor" fill="none" stroke="currentColor" d="M0 23.5H100"/>'
        '<path fill="currentColor" d="{}"/></svg>'
    )
    return format_html(picture, label, path)


# The marks


def _textures(chart: Chart) -> SafeString:
    pattern = (
        '<pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<rect class="jq-s-{}" width="6" height="6" fill="currentColor"/>'
        '<path class="jq-texture" fill="none" stroke="currentColor" stroke-width="1.6" d="{}"/></pattern>'
    )
    made = [
        (_id(chart, series.name), series.name, TEXTURES[place])
        for place, series in enumerate(chart.series)
        if TEXTURES[place]
    ]
    return format_html("<defs>{}</defs>", format_html_join("", pattern, made))


def _fill(chart: Chart, place: int) -> str:
    return f"url(#{_id(chart, chart.series[place].name)})" if TEXTURES[place] else "currentColor"


def _stacks(chart: Chart, frame: _Frame) -> SafeString:
    number = max(len(chart.moments.labels), 1)
    sums, tops = [0.0] * number, [frame.y(0)] * number
    width = (frame.x(1) - frame.x(0)) / number * (0.8 if number < 100 else 0.9)
    paths = []
    for place, series in enumerate(chart.series):
        path = ""
        for column, value in enumerate(series.values):
            if not value:
                continue
            foot = tops[column]
            sums[column] += value
            # Even one dead letter among ten thousand jobs must be visible.
            tops[column] = min(frame.y(chart.scale.share(sums[column])), foot - 1)
            path += f"M{_n(frame.x((column + 0.05) / number))} {_n(foot)}h{_n(width)}V{_n(tops[column])}h{_n(-width)}z"
        paths.append((series.name, _fill(chart, place), path))
    return format_html_join("", '<path class="jq-s-{}" fill="{}" d="{}"/>', paths)


def _line(chart: Chart, frame: _Frame, values: Values, mark: str) -> tuple[str, str, str]:
    """Make the paths of a line, of the area below it, and of the marks of single points."""
    path = area = alone = ""
    foot, number = _n(frame.y(0)), max(len(values), 1)
    for run in _runs(values):
        points = [(_n(frame.x((at + 0.5) / number)), _n(frame.y(chart.scale.share(value)))) for at, value in run]
        if len(points) == 1:
            alone += f"M{points[0][0]} {points[0][1]}{mark}"
            continue
        through = "L".join(f"{x} {y}" for x, y in points)
        path += f"M{through}"
        area += f"M{points[0][0]} {foot}L{through}V{foot}z"
    return path, area, alone


def _runs(values: Values) -> Iterator[list[tuple[int, float]]]:
    """Split the values into runs of known ones."""
    run: list[tuple[int, float]] = []
    for at, value in enumerate((*values, None)):
        if value is not None:
            run.append((at, value))
        elif run:
            yield run
            run = []


def _stroke(name: str, place: int, path: str, marks: str) -> SafeString:
    stroke = (
        '<path class="jq-s-{}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"{} d="{}"/>'
        '<path class="jq-s-{}" fill="currentColor" d="{}"/>'
    )
    dashes = format_html(' stroke-dasharray="{}"', DASHES[place]) if DASHES[place] else ""
    return format_html(stroke, name, dashes, path, name, marks)


# The frame


def _frame(chart: Chart) -> _Frame:
    longest = max((len(chart.say(tick)) for tick in chart.scale.ticks), default=0)
    return _Frame(min(12 + longest * CHARACTER, WIDTH / 3))


def _figure(chart: Chart, frame: _Frame, marks: SafeString, swatches: Sequence[SafeString], some: bool) -> SafeString:
    title, desc = _id(chart, "title"), _id(chart, "desc")
    picture = (
        '<svg class="jq-picture" viewBox="0 0 {} {}" role="img" aria-labelledby="{} {}">'
        '<title id="{}">{}</title><desc id="{}">{}</desc>{}{}{}</svg>'
    )
    drawn = format_html(
        picture,
        *(WIDTH, HEIGHT, title, desc, title, chart.title, desc, _described(chart) if some else chart.empty),
        *(_axes(chart, frame), marks, _columns(chart, frame) if some else _nothing(chart, frame)),
    )
    swatch = '<li><svg class="jq-swatch" viewBox="0 0 20 10" aria-hidden="true" focusable="false">{}</svg>{}</li>'
    legend = format_html_join("", swatch, zip(swatches, (one.label for one in chart.series), strict=True))
    figure = '<figure class="jq-chart">{}<figcaption><ul class="jq-legend">{}</ul>{}</figcaption></figure>{}'
    note = format_html('<p class="jq-quiet">{}</p>', gettext("Logarithmic scale")) if chart.scale.logarithmic else ""
    return format_html(figure, drawn, legend, note, _table(chart))


def _described(chart: Chart) -> str:
    """Describe the picture in words."""
    first, last = chart.moments.labels[0], chart.moments.labels[-1]
    said = [gettext("From %(first)s to %(last)s.") % {"first": first, "last": last}]
    for series in chart.series:
        if known := [value for value in series.values if value is not None]:
            words = {"name": series.label, "most": chart.say(max(known)), "last": chart.say(known[-1])}
            said.append(gettext("%(name)s: at most %(most)s, at last %(last)s.") % words)
    return " ".join(said)


def _axes(chart: Chart, frame: _Frame) -> SafeString:
    steps = [(frame.y(chart.scale.share(tick)), chart.say(tick)) for tick in chart.scale.ticks]
    left, right, foot = _n(frame.left), _n(WIDTH - RIGHT), HEIGHT - BOTTOM
    across = [f"M{left} {_n(y)}H{right}" for y, _label in steps]
    times = [(frame.x(share), label) for share, label in chart.moments.ticks]
    down = [f"M{_n(x)} {foot}v4" for x, _label in times]
    rows = ((_n(frame.left - 6), _n(y + 4), label) for y, label in steps)
    # A label in the corner would be cut off.
    columns = ((_n(x), HEIGHT - 5, label) for x, label in times if frame.left <= x <= WIDTH - RIGHT - 6)
    return format_html(
        '<path class="jq-rule" fill="none" stroke="currentColor" d="{}"/>'
        '<g class="jq-axis" fill="currentColor">{}{}</g>',
        "".join([*across, *down]),
        format_html_join("", '<text x="{}" y="{}" text-anchor="end">{}</text>', rows),
        format_html_join("", '<text x="{}" y="{}" text-anchor="middle">{}</text>', columns),
    )


def _nothing(chart: Chart, frame: _Frame) -> SafeString:
    text = '<text class="jq-nothing" x="{}" y="{}" text-anchor="middle" fill="currentColor">{}</text>'
    return format_html(text, _n(frame.x(0.5)), _n(frame.y(0.5)), chart.empty)


def _columns(chart: Chart, frame: _Frame) -> SafeString:
    """Make an invisible column over each span with values, to show them as a tooltip."""
    number = max(len(chart.moments.labels), 1)
    width = (frame.x(1) - frame.x(0)) / number
    column = (
        f'<rect class="jq-column" x="{{}}" y="{TOP}" width="{_n(width)}" height="{HEIGHT - BOTTOM - TOP}" '
        'fill="none" pointer-events="all"><title>{}</title></rect>'
    )
    return format_html_join(
        "",
        column,
        (
            (_n(frame.x(at / number)), f"{label}: {', '.join(found)}")
            for at, label in enumerate(chart.moments.labels)
            if (found := _found(chart, at))
        ),
    )


def _found(chart: Chart, at: int) -> list[str]:
    return [f"{one.label} {chart.say(value)}" for one in chart.series if (value := one.values[at])]


def _table(chart: Chart) -> SafeString:
    """Make the table of values, the latest first."""
    rows = (
        (label, *(NOTHING if value is None else chart.say(value) for value in values))
        for label, *values in zip(chart.moments.labels, *(one.values for one in chart.series), strict=True)
    )
    row = f'<tr><th scope="row">{{}}</th>{"<td>{}</td>" * len(chart.series)}</tr>'
    table = (
        '<details class="jq-data" id="{}"><summary>{}</summary>'
        '<div class="jq-scroll" role="group" tabindex="0" aria-label="{}"><table>'
        '<thead><tr><th scope="col">{}</th>{}</tr></thead><tbody>{}</tbody></table></div></details>'
    )
    return format_html(
        table,
        *(_id(chart, "data"), gettext("%(title)s as a table") % {"title": chart.title}, chart.title, gettext("Time")),
        format_html_join("", '<th scope="col">{}</th>', ((one.label,) for one in chart.series)),
        format_html_join("", row, reversed(list(rows))),
    )


def _id(chart: Chart, part: str) -> str:
    return f"jq-{chart.name}-{part}"


def _n(value: float) -> str:
    """Format a coordinate, rounded to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
