"""Tests of `metrics`, and that the dashboard, the command and the scrape tell the same numbers."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobqueue.admin.dashboard import snapshot
from jobqueue.observe.metrics import WINDOWS
from jobqueue.observe.prometheus.exposition import exposition
from jobqueue.policy.histogram import ERROR, buckets
from jobqueue.records import Lengths, Tally
from jobqueue.records.metric import ENDS
from jobqueue.testing.contract.harness import draft, put_all, take
from tests.conftest import ON_SQLITE

SOME = {"completed": 190, "retried": 6, "dead_lettered": 10, "stopped": 1, "lost": 3}


def recorded(seconds):
    """Return recorded durations as a worker keeps them."""
    found = {}
    for place in buckets(seconds):
        found[place] = found.get(place, 0) + 1
    return Lengths(found, sum(seconds))


def exact(seconds, share):
    """Return a percentile by nearest rank."""
    return sorted(seconds)[max(0, -(-int(share * 1_000) * len(seconds) // 1_000) - 1)]


@pytest.fixture
def busy(queue, dead_letter):
    """A queue with attempts in the last hour, waiting, running and dead jobs. Its durations."""
    dice = random.Random(3)
    waited, ran = ([dice.lognormvariate(0, 2) for _ in range(200)] for _ in range(2))
    one = Tally("mail", "send_welcome", **SOME, waited=recorded(waited), ran=recorded(ran))
    assert queue.metrics.add(queue.now() - timedelta(minutes=5), [one])
    assert queue.metrics.add(queue.now() - timedelta(minutes=5), [Tally("images", "resize_image", completed=7)])
    dead_letter()
    put_all(queue, *(draft("send_welcome", queue="mail", delay=timedelta(days=turn % 2)) for turn in range(5)))
    put_all(queue, draft("resize_image", queue="images"), draft("resize_image", queue="images"))
    assert len(take(queue, 1, types=frozenset({"resize_image"}))) == 1
    return waited, ran


def scraped(queue):
    """Return the values of a scrape, by name and labels."""
    text, _type = exposition(queue, lambda _backend: None, "")
    families = text_string_to_metric_families(text.decode())
    return [
        (one.name.removeprefix("jobqueue_"), one.labels, one.value) for family in families for one in family.samples
    ]


@pytest.mark.parametrize(
    ("of_queue", "of_type"), [("", ""), ("mail", ""), ("", "resize_image"), ("mail", "send_welcome")]
)
def test_three_faces_tell_the_same_numbers(run, queue, busy, of_queue, of_type):
    said = run("metrics", "--json", "--queue", of_queue, "--type", of_type).json
    page = snapshot.look(snapshot.Asked(WINDOWS["hour"], of_queue, of_type))
    values = scraped(queue)

    def of_both(labels):
        return of_queue in ("", labels["queue"]) and of_type in ("", labels["type"])

    def total(name, **labels):
        return sum(
            value for one, its, value in values if one == name and of_both(its) and labels.items() <= its.items()
        )

    for end in ENDS:
        assert said[end] == getattr(page.figures.total, end) == total("attempts_total", outcome=end)
    assert said["depth"] == sum(one.queued for one in page.depths) == total("jobs_waiting") + total("jobs_delayed")
    assert said["due"] == sum(one.due for one in page.depths) == total("jobs_waiting")
    assert said["in_progress"] == page.in_progress == total("jobs_active")
    assert said["dead_letters"] == page.dead_letters == total("dead_letters")
    assert said["success_rate"] == page.figures.success
    assert (said["waited"], said["ran"]) == (page.figures.total.waited._asdict(), page.figures.total.ran._asdict())
    assert said["rate_per_minute"] == said["completed"] / 60
    oldest = max(value for one, its, value in values if one == "oldest_due_age_seconds" and of_both(its))
    assert said["oldest_due"] == pytest.approx(page.oldest.total_seconds(), abs=5) == pytest.approx(oldest, abs=5)


def test_percentiles_are_within_ten_percent_of_recorded_durations(run, queue, busy):
    said = run("metrics", "--json", "--queue", "mail").json
    for name, seconds in zip(("waited", "ran"), busy, strict=True):
        for percent in (50, 95, 99):
            assert 1 / ERROR <= said[name][f"p{percent}"] / exact(seconds, percent / 100) <= ERROR
    assert said["lease_expiry_rate"] == 3 / sum(SOME.values())
    assert said["success_rate"] == 190 / 200


@ON_SQLITE
def test_an_idle_queue_has_no_rates(run, queue):
    said = run("metrics", "--json", "--window", "10m").json
    assert [said[name] for name in ("depth", "completed", "rate_per_minute")] == [0, 0, 0]
    assert [said[name] for name in ("success_rate", "lease_expiry_rate", "oldest_due")] == [None, None, None]
    assert said["window"] == 600
    table = run("metrics").out.splitlines()
    assert table[0].split("\t") == ["figure", "value"]
    assert "success_rate\t-" in table


@ON_SQLITE
@pytest.mark.parametrize("window", ["90s", "0s", "3h5m", "185m", "31d", "an hour"])
def test_a_window_without_metrics_is_refused(run, queue, window):
    said = run("metrics", "--window", window)
    assert said.code
    assert "--window" in said.err


@ON_SQLITE
def test_an_unknown_queue_gets_a_hint(run, queue):
    put_all(queue, draft("send_welcome", queue="mail"))
    said = run("metrics", "--queue", "mial", "--json")
    assert (said.code, said.json["depth"]) == (0, 0)
