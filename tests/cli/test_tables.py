"""Tests of rows as text: widths, truncation, and output for programs."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from jobqueue.cli.tables import GAP, NARROWEST, aligned, cell, separated
from jobqueue.cli.values import length

cells = st.text(max_size=60)
tables = st.integers(1, 6).flatmap(lambda size: st.lists(st.lists(cells, min_size=size, max_size=size), min_size=1))


@given(tables, st.integers(1, 200))
def test_a_table_fits_unless_its_columns_are_at_their_narrowest(rows, width):
    columns = list(zip(*aligned(rows, width), strict=True))
    widths = [{len(text) for text in column} for column in columns]
    assert all(len(one) == 1 for one in widths)
    total = sum(one.pop() for one in widths) + GAP * (len(widths) - 1)
    assert total <= width or all(len(column[0]) <= NARROWEST for column in columns[1:])


@given(tables)
def test_a_table_that_has_room_is_whole(rows):
    assert [[text.rstrip() for text in row] for row in aligned(rows, 10_000)] == [list(map(cell, row)) for row in rows]


@given(tables)
def test_a_row_is_one_line_and_a_cell_is_one_field(rows):
    lines = separated(rows)
    assert len("\n".join(lines).split("\n")) == len(rows)
    assert [line.split("\t") for line in lines] == [list(map(cell, row)) for row in rows]
    assert all(
        text.isprintable() or not set(text) & set("\r\n\t\x1b\x9b") for line in lines for text in line.split("\t")
    )


def test_the_first_column_stays_whole():
    (row,) = aligned([["01J8ZQ4Y3M6V7K2N5P8R1T4W6X", "a long story", "another long story"]], 40)
    assert [text.rstrip() for text in row] == ["01J8ZQ4Y3M6V7K2N5P8R1T4W6X", "a long …", "another…"]


def test_lengths_of_time_are_told_in_two_units():
    told = [length(timedelta(seconds=one)) for one in (-5, 0, 59, 60, 3_661, 86_400, 90_061)]
    assert told == ["0s", "0s", "59s", "1m", "1h 1m", "1d", "1d 1h"]
