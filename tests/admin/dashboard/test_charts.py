"""Tests of charts: well-formed, escaped markup without styles, with the same values in words and numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import isclose
from xml.etree import ElementTree

import pytest
from django.utils import timezone, translation
from hypothesis import example, given
from hypothesis import strategies as st

from jobqueue.admin.dashboard import charts, scales
from jobqueue.admin.dashboard.charts import Chart, Series, areas, bars, lines, sparkline

NOON = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOSTILE = "<script>alert('1')</script>\"&amp;"
VALUES = {
    "nothing is known": [None, None, None],
    "nothing happened": [0, 0, 0],
    "one value": [None, 3, None],
    "gaps": [1, None, 2],
    "fractions": [0.1, 0.25, 1 / 3],
    "far apart": [0.0001, 1, 90_000],
    "many": [2**31, 2**31, 2**31],
}
each_value = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
each_kind = pytest.mark.parametrize("draw", [bars, lines, areas])
NAMES = ("queued", "in-progress", "lost", "stopped", "retried")


def chart(*columns, title="Depth", scale=scales.counts, **values):
    """A chart of one span for each value, with a series for each column."""
    series = [Series(name, name, column) for name, column in zip(NAMES, columns, strict=False)]
    known = [value for column in columns for value in column if value is not None]
    begins = [NOON + count * MINUTE for count in range(len(columns[0]))]
    return Chart(
        **{
            "name": "depth",
            "title": title,
            "moments": scales.moments(begins, MINUTE),
            "scale": scale(known),
            "say": scales.number,
            "series": series,
            "empty": "Nothing.",
            **values,
        }
    )


def tree(markup):
    return ElementTree.fromstring(f"<div>{markup}</div>")  # noqa: S314 - our own


def path(markup, name):
    """The path of a series."""
    found = [one.get("d") for one in tree(markup).find(".//svg").findall(f"path[@class='jq-s-{name}']")]
    return "".join(found)


def heights(d):
    return [float(foot) - float(top) for foot, top in re.findall(r"M\S+ (\S+?)h\S+?V(\S+?)h", d)]


# Whatever is drawn


@each_kind
@each_value
def test_a_chart_is_well_formed_and_has_no_style(draw, values):
    markup = draw(chart(values, values[::-1], title=HOSTILE, empty=HOSTILE))
    found = list(tree(markup).iter())
    assert [one.tag for one in found if one.tag in ("style", "script")] == []
    assert [name for one in found for name in one.attrib if name == "style" or name.startswith("on")] == []
    assert "nan" not in markup
    assert "inf" not in markup.replace("inform", "")


@each_kind
@each_value
def test_a_chart_has_a_name_and_a_description_and_no_id_twice(draw, values):
    root = tree(draw(chart(values, values)))
    picture = root.find(".//svg[@role='img']")
    ids = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    named = [picture.find(f"*[@id='{one}']") for one in picture.get("aria-labelledby").split()]
    assert [one.tag for one in named] == ["title", "desc"]
    assert all(one.text for one in named)
    used = re.findall(r"url\(#(.*?)\)", ElementTree.tostring(root, encoding="unicode"))
    assert set(used) <= set(ids)


@each_kind
def test_what_is_told_is_escaped(draw):
    hostile = chart([1, 2], title=HOSTILE, series=[Series("queued", HOSTILE, [1, 2])], say=lambda value: f"<{value}>")
    markup = draw(hostile)
    assert "<script>" not in markup
    assert tree(markup).find(".//svg/title").text == HOSTILE
    assert tree(markup).find(".//th[2]").text == HOSTILE
    assert tree(markup).find(".//td").text == "<2>"


@each_kind
@each_value
def test_the_table_has_the_same_figures_the_latest_first(draw, values):
    root = tree(draw(chart(values)))
    rows = [(row.find("th").text, row.find("td").text) for row in root.findall(".//tbody/tr")]
    said = [charts.NOTHING if value is None else scales.number(value) for value in values]
    assert rows == list(zip(["14:02", "14:01", "14:00"], said[::-1], strict=True))
    assert {head.get("scope") for head in root.findall(".//th")} == {"col", "row"}
    assert root.find(".//details/summary").text == "Depth as a table"
    assert root.find(".//details").get("open") is None


@each_kind
def test_where_there_is_nothing_it_says_so(draw):
    for values in ([None, None], [None] * 60):
        markup = draw(chart(values))
        assert tree(markup).find(".//svg/desc").text == "Nothing."
        assert [text.text for text in tree(markup).findall(".//svg/text")] == ["Nothing."]
    assert tree(draw(chart([None, 1]))).findall(".//svg/text") == []


def test_no_bar_at_all_is_nothing_but_a_line_at_zero_is_something():
    assert tree(bars(chart([0, 0]))).find(".//svg/desc").text == "Nothing."
    assert "at most 0, at last 0" in tree(lines(chart([0, 0]))).find(".//svg/desc").text


def test_the_description_says_what_the_picture_shows():
    said = tree(lines(chart([1, 7, 2]))).find(".//svg/desc").text
    assert said == "From 14:00 to 14:02. queued: at most 7, at last 2."


def test_a_pointer_finds_the_figures_of_each_span_that_has_some():
    columns = tree(bars(chart([0, 2, 1], [0, 0, 5]))).findall(".//rect[@class='jq-column']")
    assert [one.find("title").text for one in columns] == ["14:01: queued 2", "14:02: queued 1, in-progress 5"]
    assert {(one.get("fill"), one.get("pointer-events")) for one in columns} == {("none", "all")}


@each_kind
def test_the_legend_names_each_series_with_its_own_sample(draw):
    items = tree(draw(chart([1, 2], [1, 2], [1, 2]))).findall(".//ul/li")
    samples = [ElementTree.tostring(one.find("svg"), encoding="unicode") for one in items]
    assert ["".join(one.itertext()) for one in items] == ["queued", "in-progress", "lost"]
    # Also without the classes, which are all that gives them colours.
    bare = {re.sub(r'class="[^"]*"', "", one).split("</svg>")[0] for one in samples}
    assert len(bare) == 3


# Bars


def test_a_bar_is_as_high_as_its_value():
    full, half = heights(path(bars(chart([10, 5])), "queued"))
    assert isclose(full, 2 * half, abs_tol=0.2)
    assert isclose(full, charts.HEIGHT - charts.TOP - charts.BOTTOM, abs_tol=0.1)


def test_bars_stand_on_each_other():
    markup = bars(chart([4], [6], scale=lambda _known: scales.counts([10])))
    lower, upper = (re.search(r"M\S+ (\S+?)h\S+?V(\S+?)h", path(markup, name)) for name in ("queued", "in-progress"))
    assert lower[2] == upper[1]
    assert isclose(sum(heights(path(markup, "queued")) + heights(path(markup, "in-progress"))), 148, abs_tol=0.2)


def test_one_among_ten_thousand_is_seen():
    (height,) = heights(path(bars(chart([10_000], [1])), "in-progress"))
    assert height >= 1


def test_each_series_of_bars_has_a_texture_of_its_own():
    root = tree(bars(chart(*[[1]] * 5)))
    textures = [one.find("path").get("d") for one in root.findall(".//defs/pattern")]
    assert len(set(textures)) == 4
    fills = [one.get("fill") for one in root.find(".//svg").findall("path") if one.get("class").startswith("jq-s-")]
    assert fills[0] == "currentColor"
    assert len(set(fills)) == 5


# Lines


def test_a_line_is_broken_where_nothing_is_known_and_a_lone_point_has_a_mark():
    markup = lines(chart([1, 2, None, 3, None, 4, 5], [1] * 7))
    marks = tree(markup).find(".//svg").findall("path[@class='jq-s-queued']")
    assert marks[0].get("d").count("M") == 2
    assert marks[1].get("d").count("M") == 1
    assert charts.MARKS[0] in marks[1].get("d")


def test_the_lines_have_dashes_of_their_own():
    root = tree(lines(chart([1, 2], [1, 2], [1, 2]))).find(".//svg")
    assert {one.get("stroke-dasharray") for one in root.findall("path[@stroke-width]")} == {None, "5 3", "1.5 2.5"}


def test_the_area_below_the_first_line_is_filled():
    filled = tree(areas(chart([1, 2], [1, 2]))).findall(".//svg/path[@class='jq-area jq-s-queued']")
    assert len(filled) == 1
    assert filled[0].get("d").endswith("V158z")


def test_a_logarithmic_scale_is_said_to_be_one():
    assert "Logarithmic scale" in lines(chart([0.001, 60], scale=scales.seconds))
    assert "Logarithmic scale" not in lines(chart([1, 60], scale=scales.seconds))


# Small ones


@pytest.mark.parametrize("values", [[], [0, 0], [None, None], [1], [5, None, 10], [2**40, 1]])
def test_a_sparkline_is_well_formed_and_says_what_it_is(values):
    root = tree(sparkline(values, HOSTILE)).find("svg")
    assert root.find("title").text == HOSTILE
    assert root.get("role") == "img"
    drawn = root.findall("path")[1].get("d")
    assert drawn.count("M") == len([value for value in values if value])
    assert all(0 < float(top) <= 22 for top in re.findall(r"V(\S+?)h", drawn))


# Axes


@given(st.lists(st.integers(0, 2**53), max_size=5))
@example([100_000_000_001])
@example([2**53 - 1])
def test_an_axis_of_whole_numbers_reaches_above_them_in_whole_steps(values):
    scale = scales.counts(values)
    assert scale.ticks[0] == scale.low == 0
    assert scale.ticks[-1] == scale.high >= max(values, default=0)
    assert 2 <= len(scale.ticks) <= scales.STEPS + 2
    assert all(float(tick).is_integer() for tick in scale.ticks)


@given(st.lists(st.floats(1e-4, 1e9), min_size=1, max_size=5), st.sampled_from([scales.counts, scales.seconds]))
def test_values_stand_on_an_axis_in_their_order(values, scale_of):
    scale = scale_of(values)
    shares = [scale.share(value) for value in sorted(values)]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert 2 <= len(scale.ticks) <= 9
    assert scale.low <= min(values)
    assert scale.high >= max(values) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([], (0, 1)),
        ([0], (0, 1)),
        ([3], (0, 1, 2, 3)),
        ([7, 2], (0, 2, 4, 6, 8)),
        ([1234], (0, 500, 1000, 1500)),
    ],
)
def test_counts_have_round_steps(values, ticks):
    assert scales.counts(values).ticks == ticks


def test_rates_may_have_parts_of_one():
    assert [scales.number(tick) for tick in scales.counts([0.1, 0.35]).ticks] == ["0", "0.1", "0.2", "0.3", "0.4"]


@pytest.mark.parametrize(
    ("values", "said", "is_logarithmic"),
    [
        ([], ["0 s", "500 ms", "1 s"], False),
        ([0.0, 0.0], ["0 s", "500 ms", "1 s"], False),
        ([0.5, 0.8], ["0 s", "200 ms", "400 ms", "600 ms", "800 ms"], False),
        ([30, 100], ["0 s", "30 s", "1 min", "1.5 min", "2 min"], False),
        ([3600, 50_000], ["0 s", "6 h", "12 h", "18 h"], False),
        ([0.004, 3], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"], True),
        ([0.5, 5000], ["100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "10 h"], True),
    ],
)
def test_lengths_have_round_steps_and_a_logarithmic_scale_only_where_they_differ_much(values, said, is_logarithmic):
    scale = scales.seconds(values)
    assert [scales.brief(tick).replace("\xa0", " ") for tick in scale.ticks] == said
    assert scale.logarithmic == is_logarithmic


@given(st.floats(1e-6, 1e12))
def test_a_number_is_right_to_three_in_a_hundred(value):
    assert isclose(float(scales.number(value).replace(",", "")), value, rel_tol=0.031)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (12, "12"), (1 / 60, "0.017"), (12_345, "12,345"), (2.5, "2.5")])
def test_a_number_is_short(value, text):
    assert scales.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (0.0344, "34 ms"), (1.5, "1.5 s"), (90, "1.5 min"), (7200, "2 h"), (864_000, "10 d")],
)
def test_lengths_are_short(value, text):
    assert scales.brief(value) == text.replace(" ", "\xa0")


def test_numbers_and_days_are_written_as_the_reader_does():
    with translation.override("de"):
        assert scales.number(1234.5) == "1.234"
        assert scales.number(2.5) == "2,5"
        begins = [NOON + count * timedelta(hours=1) for count in range(168)]
        assert scales.moments(begins, timedelta(hours=1)).labels[0] == "Mi 14:00"


def test_times_are_the_readers_and_round():
    hour = scales.moments([NOON + count * MINUTE for count in range(60)], MINUTE)
    assert hour.labels[0] == "14:00"
    assert [label for _share, label in hour.ticks] == ["14:00", "14:15", "14:30", "14:45", "15:00"]
    assert [share for share, _label in hour.ticks] == [0, 0.25, 0.5, 0.75, 1]
    with timezone.override("Asia/Kathmandu"):  # 5:45 ahead
        hour = scales.moments([NOON + count * MINUTE for count in range(60)], MINUTE)
        assert [label for _share, label in hour.ticks] == ["17:45", "18:00", "18:15", "18:30", "18:45"]


def test_a_day_has_its_quarters_and_a_week_its_midnights_also_when_clocks_are_turned():
    # In the night before the 29th of March 2026 two o'clock becomes three.
    begin = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
    day = scales.moments([begin + count * timedelta(minutes=10) for count in range(144)], timedelta(minutes=10))
    assert [label for _share, label in day.ticks] == ["18:00", "00:00", "06:00", "12:00"]
    gaps = [(later[0] - sooner[0]) * 24 for sooner, later in zip(day.ticks, day.ticks[1:], strict=False)]
    assert [round(gap, 6) for gap in gaps] == [6, 5, 6]
    week = scales.moments([begin + count * timedelta(hours=1) for count in range(168)], timedelta(hours=1))
    assert [label for _share, label in week.ticks] == ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    assert isclose((week.ticks[1][0] - week.ticks[0][0]) * 168, 23)


def test_without_time_zones_times_are_utc(settings):
    settings.USE_TZ = False
    assert scales.moments([NOON], MINUTE).labels == ("12:00",)


def test_no_spans_are_no_axis():
    assert scales.moments([], MINUTE) == scales.Moments((), ())
