"""The chart of the comparison: a bar for each contestant's drain, by store, in one SVG for light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.peers.catalogue import League
from benchmarks.peers.standings import Standing
from benchmarks.peers.stores import STORES

_WIDTH = 480
_LABELS = 178
_BARS = 232
_ROW = 22
_HEAD = 34
_TOP = 56
_FOOT = 30

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.store { font-weight: 600 }
.quiet { fill: #59636e }
.peer { fill: #8c959f }
.ours { fill: #0969da }
.raw { fill: none; stroke: #8c959f; stroke-dasharray: 3 2 }
.bold { font-weight: 600 }
.paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .quiet { fill: #9198a1 }
  .peer { fill: #6e7681 }
  .ours { fill: #4493f8 }
  .raw { stroke: #9198a1 }
  .paper { fill: #0d1117 }
}
"""


def chart(standings: Sequence[Standing]) -> str:
    """Draw the drains of no-op jobs."""
    ran = [standing for standing in standings if standing.findings]
    most = max((standing.drain() for standing in ran), default=0) or 1
    groups = [(key, [one for one in ran if one.contestant.store == key]) for key in STORES]
    parts = list(_groups([(key, group) for key, group in groups if group], most))
    height = _TOP + sum(_HEAD + len(group) * _ROW for _, group in groups if group) + _FOOT
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">',
            '<title id="title">No-op jobs drained per second, by store and queue</title>',
            f'<desc id="description">{escape(_spoken(ran))}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
            '<text class="title" x="12" y="26">No-op jobs drained per second</text>',
            '<text class="quiet" x="12" y="45">one machine, one run, medians; longer is faster</text>',
            *parts,
            f'<text class="quiet" x="12" y="{height - 10}">dashed: the bare SQL of one process, no handlers</text>',
            "</svg>\n",
        ]
    )


def _groups(groups: Sequence[tuple[str, list[Standing]]], most: float) -> Iterator[str]:
    y = _TOP
    for key, group in groups:
        yield f'<text class="store" x="12" y="{y + 23}">{escape(STORES[key].title)}</text>'
        y += _HEAD
        for standing in sorted(group, key=Standing.drain, reverse=True):
            yield from _row(standing, y, most)
            y += _ROW


def _row(standing: Standing, y: int, most: float) -> Iterator[str]:
    contestant, rate = standing.contestant, standing.drain()
    kind = "ours" if contestant.is_ours else "raw" if contestant.league is League.RAW else "peer"
    width = max(1.0, _BARS * rate / most)
    weight = " bold" if contestant.is_ours else ""
    yield f'<text class="label{weight}" x="{_LABELS}" y="{y + 15}" text-anchor="end">{escape(_label(standing))}</text>'
    yield f'<rect class="{kind}" x="{_LABELS + 8}" y="{y + 4}" width="{width:.1f}" height="14" rx="2"/>'
    yield f'<text class="value{weight}" x="{_LABELS + 14 + width:.1f}" y="{y + 15}">{rate:,.0f}</text>'


def _label(standing: Standing) -> str:
    """Name a bar in few words: which store and league it is of, its group says."""
    contestant = standing.contestant
    return f"{contestant.peer.title}, 50 threads" if contestant.league is League.SLOTS else contestant.peer.title


def _title(standing: Standing) -> str:
    return STORES[standing.contestant.store].title


def _spoken(standings: Sequence[Standing]) -> str:
    """Read all bars out, for who cannot see them."""
    return " ".join(f"{_label(one)} on {_title(one)}: {one.drain():,.0f}." for one in standings)
