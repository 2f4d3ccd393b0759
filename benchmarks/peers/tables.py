"""The comparison as Markdown: speeds, the cost of idling, ratios and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks import report, timing
from benchmarks.peers.catalogue import League
from benchmarks.peers.ratios import Ratio
from benchmarks.peers.standings import Standing, at_once, middle, spread, tail
from benchmarks.peers.stores import STORES

RATES = ("store", "queue", "setting", "enqueue/s", "bulk/s", "no-op jobs/s", "of raw SQL", "5 ms jobs/s (at once)")
IDLE = ("store", "queue", "pickup p50 / p95 / p99, ms (times)", "idle, % of a core", "PSS idle, MB", "PSS after, MB")
RATIOS = ("measure", "this queue", "its rival", "times", "to reach")
SETTINGS = ("store", "queue", "jobs", "setting for 5 ms jobs", "tried, jobs/s", "note")
LEGEND = (
    "Medians of the turns (lowest-highest). A drain counts from the first handler's start until the store reports "
    "nothing queued or running; the processes of a queue begin together, and every handler counts itself in the same "
    "shared file and does no more. Sleeping jobs "
    "sleep 5 ms; beside their rate is how many ran at a time. A pickup is from the commit to the handler's first line "
    "in an idle worker. Idle CPU and memory (PSS) are those of all worker processes, without the server of the store. "
    'In the leagues "as installed" nothing is set that a new project or the queue does not set by itself.'
)


def tables(standings: Sequence[Standing], ratios: Iterable[Ratio], durability: Mapping[str, str]) -> Iterator[str]:
    """Write the comparison, part by part."""
    ran = [standing for standing in standings if standing.findings]
    yield report.table(RATES, [_rates(standing, standings) for standing in ran])
    yield report.table(IDLE, [_idle(standing) for standing in ran if standing.contestant.league is not League.RAW])
    yield report.table(RATIOS, [ratio.cells() for ratio in ratios])
    yield report.table(SETTINGS, [_settings(standing) for standing in ran])
    yield LEGEND
    yield "\n".join(f"- {store}: {worth}." for store, worth in durability.items())
    for standing in standings:
        if standing.why_not:
            yield f"!!! NOT RUN: {standing.name}: {standing.why_not}"


def _head(standing: Standing) -> tuple[str, str]:
    title = standing.contestant.title
    return STORES[standing.contestant.store].title, f"**{title}**" if standing.contestant.is_ours else title


def _rates(standing: Standing, standings: Sequence[Standing]) -> tuple[str, ...]:
    raw = [
        each.values(lambda one: one.drain)
        for each in standings
        if each.contestant.league is League.RAW and each.contestant.store == standing.contestant.store
    ]
    drains = standing.values(lambda one: one.drain)
    share = timing.share(*_paired(drains, raw[0])) if raw else None
    return (
        *_head(standing),
        standing.setting.label,
        middle(standing.values(lambda one: one.enqueue)),
        middle(standing.values(lambda one: one.bulk)),
        spread(drains),
        "-" if share is None else f"{share:.0%}",
        at_once(standing.values(lambda one: one.naps)),
    )


def _paired(ours: Sequence[float], raw: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Keep the turns that both have taken."""
    both = min(len(ours), len(raw))
    return ours[:both], raw[:both]


def _idle(standing: Standing) -> tuple[str, ...]:
    return (
        *_head(standing),
        tail(standing.pickups()),
        middle(standing.values(lambda one: one.idle), 1),
        middle(standing.values(lambda one: one.memory_idle)),
        middle(standing.values(lambda one: one.memory_drained)),
    )


def _settings(standing: Standing) -> tuple[str, ...]:
    contestant = standing.contestant
    tried = ", ".join(f"{label}: {rate:,.0f}" for label, rate in standing.tried.items())
    return (
        *_head(standing),
        f"{standing.findings[0].jobs:,}",
        contestant.napping.label if contestant.napping else "the same",
        tried or "-",
        contestant.peer.note,
    )
