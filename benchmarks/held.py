"""The chart of waiting times under a snapshot: one line for each version, in one SVG for light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from typing import Any, NamedTuple

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 560, 300, 70, 60, 46
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.quiet { fill: #59636e }
.after { fill: none; stroke: #0969da; stroke-width: 2 }
.before { fill: none; stroke: #8c959f; stroke-width: 2; stroke-dasharray: 5 3 }
.grid { stroke: #d1d9e0 }
.paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .quiet { fill: #9198a1 }
  .after { stroke: #4493f8 }
  .grid { stroke: #3d444d }
  .paper { fill: #0d1117 }
}
"""


class _Scale(NamedTuple):
    """The minutes from the left of the chart to its right."""

    first: float
    last: float

    def place(self, minutes: float) -> float:
        return _LEFT + (_WIDTH - 20 - _LEFT) * (minutes - self.first) / (self.last - self.first)


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def chart(after: dict[str, Any], before: dict[str, Any] | None) -> str:
    """Draw the p99 of the waiting time over how long the snapshot is held, on a logarithmic scale."""
    curves = [(name, curve) for name, curve in (("before", before), ("after", after)) if curve]
    points = {name: [(_minutes(curve, line), line["p99"]) for line in curve["curve"]] for name, curve in curves}
    minutes = [at for line in points.values() for at, _ in line]
    scale = _Scale(min(minutes), max(max(minutes), min(minutes) + 0.1))
    decades = ceil(log10(max(10.0, *(wait for line in points.values() for _, wait in line))))
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    told = "; ".join(f"{name}: {line[-1][1]:,.0f} ms after {line[-1][0]:.1f} minutes" for name, line in points.items())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
            '<title id="title">How long jobs wait while a snapshot is held</title>',
            f'<desc id="description">{told}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
            f'<text class="title" x="12" y="26">Wait at {after["rate"]} jobs a second, p99</text>',
            '<text class="quiet" x="12" y="45">solid: with floors; dashed: without; logarithmic</text>',
            *(_gridline(number, decades) for number in range(decades + 1)),
            *(_line(name, line, scale, decades) for name, line in points.items()),
            f'<text class="quiet" x="{_LEFT}" y="{_HEIGHT - 14}">{scale.first:.1f} min</text>',
            (
                f'<text class="quiet" x="{_WIDTH - 20}" y="{_HEIGHT - 14}" text-anchor="end">'
                f"snapshot held for {scale.last:.1f} min</text>"
            ),
            "</svg>\n",
        ]
    )


def _minutes(curve: dict[str, Any], line: dict[str, float]) -> float:
    """Return for how long the snapshot was held; jobs done before the measure count as their time."""
    return float(line.get("held", curve["aged"] / curve["rate"] + line["second"]) / 60)


def _height(wait: float, decades: int) -> float:
    share = log10(max(1.0, wait)) / decades
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _gridline(number: int, decades: int) -> str:
    y = _height(10.0**number, decades)
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y:.0f}" y2="{y:.0f}"/>'
        f'<text class="quiet" x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{10**number:,} ms</text>'
    )


def _line(name: str, line: Sequence[tuple[float, float]], scale: _Scale, decades: int) -> str:
    points = " ".join(f"{scale.place(at):.0f},{_height(wait, decades):.0f}" for at, wait in line)
    return f'<polyline class="{name}" points="{points}"/>'
