"""Tests of other programs' rows: run on time, or refused by the database."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.clock import from_text, to_text
from jobqueue.ids import new_id
from jobqueue.models import Attempt, Job, Pause
from jobqueue.models.fields import MomentField
from jobqueue.records import Again, Scope
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import (
    LEASE,
    draft,
    failing,
    finish,
    job,
    put,
    put_all,
    request,
    settle,
    sweep,
    take,
    take_one,
)
from tests.conftest import make_sql_backend

SQLITE_INSERT = """
INSERT INTO job_queue (id, type, payload, idempotency_key, scheduled_at, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
POSTGRES_INSERT = SQLITE_INSERT.replace("?", "%s")


def to_postgres():
    """Open a connection of one's own, as psql would."""
    import psycopg

    given = connections["postgres"].get_connection_params()
    names = {"host", "port", "user", "password", "dbname"}
    return psycopg.connect(**{key: value for key, value in given.items() if key in names}, autocommit=True)


def to_sqlite():
    return sqlite3.connect(connections["default"].settings_dict["NAME"], isolation_level=None)


class Program:
    """Another program with a connection of its own."""

    def __init__(self, alias):
        self.alias = alias
        self.connection = to_sqlite() if alias == "default" else to_postgres()
        self.insert = SQLITE_INSERT if alias == "default" else POSTGRES_INSERT

    def enqueue(self, at, created=None, payload='{"image_id":7}', key=None):
        job_id = new_id()
        created = at if created is None else created
        self.connection.execute(self.insert, (job_id, "resize", payload, key, at, created, created))
        return job_id

    def run(self, statement):
        return self.connection.execute(statement)


@pytest.fixture
def backend(alias, clock):
    return make_sql_backend(alias, clock)


@pytest.fixture
def program(alias):
    program = Program(alias)
    with closing(program.connection):
        yield program


@pytest.fixture
def sqlite_backend(databases, clock):
    return make_sql_backend("default", clock)


@pytest.fixture
def sqlite_program(databases):
    program = Program("default")
    with closing(program.connection):
        yield program


def refusal(alias, name):
    """The error of a database that will not store a row; ``name`` is what Postgres calls it."""
    if alias == "default":
        return sqlite3.IntegrityError
    import psycopg

    return getattr(psycopg.errors, name)


# On time

PRECISIONS = {
    "seconds": ("2026-01-16T12:00:05Z", timedelta(seconds=1)),
    "tenths": ("2026-01-16T12:00:05.5Z", timedelta(seconds=0.1)),
    "milliseconds": ("2026-01-16T12:00:05.250Z", timedelta(milliseconds=1)),
    "microseconds": ("2026-01-16T12:00:05.250001Z", timedelta(microseconds=1)),
    "nanoseconds": ("2026-01-16T12:00:05.250001400Z", timedelta(microseconds=1)),
}


@pytest.mark.parametrize("written", PRECISIONS)
def test_a_row_is_claimed_when_due_to_the_precision_of_its_writer(backend, program, clock, written):
    at, precision = PRECISIONS[written]
    due = datetime.fromisoformat(at)
    job_id = program.enqueue(at)
    clock.advance(due - NOON - timedelta(microseconds=1))
    assert take(backend) == []
    clock.advance(timedelta(microseconds=1) + precision)
    claim = take_one(backend)
    assert (claim.id, claim.payload.replace(" ", ""), claim.scheduled_at) == (job_id, '{"image_id":7}', due)


def test_a_row_written_now_is_claimed_by_the_clock_of_the_machine(queue, alias):
    program = Program(alias)
    with closing(program.connection):
        job_id = program.enqueue(to_text(queue.now() - timedelta(milliseconds=1)))
    assert take_one(queue).id == job_id


@pytest.mark.parametrize("written", PRECISIONS)
def test_a_worker_is_told_to_wait_for_a_row_not_due_and_never_to_spin(backend, program, clock, written):
    at, _precision = PRECISIONS[written]
    program.enqueue(at)
    cycle = backend.cycle("me", (), request())
    assert cycle.next_due == datetime.fromisoformat(at) - NOON
    clock.advance(cycle.next_due)
    cycle = backend.cycle("me", (), request())
    # What text order puts after this very moment is due a little later; "at once" would be a loop without a pause.
    assert cycle.claims or cycle.next_due > timedelta(0)


@pytest.mark.sqlite
def test_a_worker_between_two_seconds_is_not_told_to_come_back_in_the_past(sqlite_backend, sqlite_program, clock):
    sqlite_program.enqueue("2026-01-16T12:00:00Z")
    clock.advance(0.5)
    cycle = sqlite_backend.cycle("me", (), request())
    assert cycle.claims or timedelta(0) < cycle.next_due <= timedelta(seconds=0.5)


def test_rows_of_all_writers_come_in_the_order_of_time(backend, program, clock):
    shapes = ["12:00:01Z", "12:00:02.5Z", "12:00:03.250Z", "12:00:04.000001Z", "12:00:05.123456789Z"]
    ids = {shape: program.enqueue(f"2026-01-16T{shape}") for shape in reversed(shapes)}
    ours = put(backend, scheduled_at=NOON + timedelta(seconds=3))
    clock.advance(10)
    expected = [ids[shape] for shape in shapes]
    expected.insert(2, ours)
    assert [claim.id for claim in take(backend)] == expected


def test_a_row_runs_through_all_of_its_life(backend, program, clock):
    job_id = program.enqueue("2026-01-16T11:59:59.000Z", key="import-1")
    settle(backend, failing(take_one(backend), Again(timedelta(seconds=5))))
    clock.advance(6)
    claim = take_one(backend)
    backend.extend([claim], LEASE)
    assert finish(backend, claim, '{"done": true}')
    row = job(backend, job_id)
    assert (row.status, row.attempts, row.fence, len(row.history)) == ("completed", 2, 2, 1)


def test_what_a_row_leaves_out_is_filled_in_by_the_database(backend, program):
    row = job(backend, program.enqueue("2026-01-16T12:00:00.000Z"))
    assert (row.status, row.queue, row.priority, row.max_retries) == ("queued", "default", 5, 3)
    assert (row.attempts, row.fence, row.payload_version, row.crash_count) == (0, 0, 1, 0)


# What SQLite's files hold


def columns_of_moments():
    return [
        (model._meta.db_table, field.column)
        for model in (Job, Attempt, Pause)
        for field in model._meta.get_fields()
        if isinstance(field, MomentField)
    ]


@pytest.mark.sqlite
def test_every_moment_we_write_is_iso_8601_text_in_utc(sqlite_backend, sqlite_program, clock):
    backend = sqlite_backend
    put(backend, expires_at=NOON + timedelta(seconds=1))
    put(backend, delay=timedelta(hours=1))
    done, failed, lost, stopped, cancelled, revived = put_all(backend, *(draft() for _ in range(6)))
    clock.advance(1)
    sweep(backend, clock)
    claims = {claim.id: claim for claim in take(backend)}
    assert finish(backend, claims[done])
    settle(backend, failing(claims[failed], Again(timedelta(seconds=7))))
    backend.extend([claims[stopped], claims[revived]], timedelta(minutes=10))
    backend.operator.cancel([stopped, cancelled])
    clock.advance(61)
    sweep(backend, clock)
    backend.operator.cancel([lost])
    backend.operator.retry([lost])
    backend.operator.pause(Scope.QUEUE, "mail")
    Job.objects.filter(pk=done).update(slot_at=clock.now())
    texts = [
        text
        for table, column in columns_of_moments()
        for (text,) in sqlite_program.run(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
    ]
    filled = {
        column
        for table, column in columns_of_moments()
        if sqlite_program.run(f"SELECT count({column}) FROM {table}").fetchone()[0]
    }
    assert filled == {column for _table, column in columns_of_moments()}
    assert [text for text in texts if to_text(datetime.fromisoformat(text)) != text] == []
    assert max(texts) <= to_text(clock.now() + timedelta(hours=1))


@pytest.mark.sqlite
def test_a_moment_of_another_zone_is_written_in_utc(sqlite_backend, sqlite_program):
    berlin = datetime.fromisoformat("2026-07-01T14:00:00+02:00")
    put(sqlite_backend, scheduled_at=berlin)
    ((text,),) = sqlite_program.run("SELECT scheduled_at FROM job_queue").fetchall()
    assert text == "2026-07-01T12:00:00.000000Z"


# What is refused

SHAPES = {
    "a space": "2026-01-16 12:00:00Z",
    "a small t": "2026-01-16t12:00:00Z",
    "a small z": "2026-01-16T12:00:00z",
    "no zone": "2026-01-16T12:00:00",
    "decimals and no zone": "2026-01-16T12:00:00.000",
    "an offset": "2026-01-16T12:00:00+00:00",
    "decimals and an offset": "2026-01-16T12:00:00.000+00:00",
    "another offset": "2026-01-16T14:00:00.000+02:00",
    "letters after the decimals": "2026-01-16T12:00:00.123xZ",
    "two zones": "2026-01-16T12:00:00.123ZZ",
    "two points": "2026-01-16T12:00:00.123.456Z",
    "a point and no decimals": "2026-01-16T12:00:00.Z",
    "a comma": "2026-01-16T12:00:00,123Z",
    "a space at the end": "2026-01-16T12:00:00Z ",
    "a space before": " 2026-01-16T12:00:00Z",
    "a line break": "2026-01-16T12:00:00.123Z\n",
    "no seconds": "2026-01-16T12:00Z",
    "a date": "2026-01-16",
    "no dashes": "20260116T120000Z",
    "five digits of year": "12026-01-16T12:00:00Z",
    "an empty text": "",
    "seconds since 1970": 1_768_564_800,
    "milliseconds since 1970": 1_768_564_800_000.5,
    "a word": "now",
}


@pytest.mark.sqlite
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("column", ["at", "created"])
def test_a_moment_of_another_shape_is_refused(sqlite_program, shape, column):
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        sqlite_program.enqueue(**{"at": "2026-01-16T12:00:00Z", column: SHAPES[shape]})


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "never",
    [
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-01-39T00:00:00Z",
        "2026-01-16T24:00:01Z",
        "2026-01-16T29:59:59Z",
        "0000-01-16T12:00:00Z",
    ],
)
def test_a_moment_that_no_calendar_knows_is_refused(sqlite_program, never):
    """Else it is stored, and the claim that reads it fails, and so does each one after it."""
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        sqlite_program.enqueue(never)


DIGITS = st.integers(0, 99).map("{:02}".format)
ALMOST = st.builds(
    "{}-{}-{}T{}:{}:{}{}{}".format,
    st.sampled_from(["0001", "2026", "2028", "9999", "0000", "-026", "20 6"]),
    st.sampled_from(["01", "02", "12", "00", "13", " 2", "2"]) | DIGITS,
    st.sampled_from(["01", "28", "29", "30", "31", "00", "2x"]) | DIGITS,
    st.sampled_from(["00", "23", "24", "29"]) | DIGITS,
    DIGITS,
    DIGITS | st.sampled_from(["", "5", "5.", "\N{ARABIC-INDIC DIGIT FIVE}5"]),
    st.sampled_from(["", ".", ".5", ".123456", ".999999999", ".5 ", ".x5", " ", "5", ".-5"]),
    st.sampled_from(["Z", "z", "", "+00:00", "ZZ", " Z", "Z ", "5Z"]),
)


def is_a_moment(text):
    """What the column promises, in Python's words."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z", text):
        return False
    try:
        moment = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC)
    except ValueError:
        return False
    return datetime(1, 1, 2, tzinfo=UTC) <= moment < datetime(9999, 12, 30, tzinfo=UTC)


@pytest.mark.sqlite
@given(st.lists(ALMOST | st.text(max_size=30), min_size=1))
def test_a_column_of_moments_takes_all_that_are_moments_and_nothing_else(texts):
    field = MomentField()
    field.set_attributes_from_name("at")
    with closing(sqlite3.connect(":memory:")) as raw:
        raw.execute(f"CREATE TABLE moments (at text CHECK ({field.db_check(connections['default'])}))")
        for text in [one for one in texts if "\0" not in one]:
            try:
                raw.execute("INSERT INTO moments VALUES (?)", (text,))
            except (sqlite3.IntegrityError, UnicodeEncodeError):
                assert not is_a_moment(text)
            else:
                assert is_a_moment(text)
                assert from_text(text).tzinfo is UTC


@pytest.mark.sqlite
def test_no_column_of_moments_takes_another_shape(sqlite_backend, sqlite_program):
    put(sqlite_backend)
    settle(sqlite_backend, failing(take_one(sqlite_backend)))
    sqlite_backend.operator.pause(Scope.TYPE, "greet")
    for table, column in columns_of_moments():
        with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
            sqlite_program.run(f"UPDATE {table} SET {column} = '2026-01-16 12:00:00'")


@pytest.mark.parametrize("status", ["done", "", "QUEUED", "queued "])
def test_another_status_is_refused(alias, program, status):
    program.enqueue("2026-01-16T12:00:00Z")
    with pytest.raises(refusal(alias, "CheckViolation")):
        program.run(f"UPDATE job_queue SET status = '{status}'")


@pytest.mark.parametrize("priority", [0, 11, -1, 1000])
def test_a_priority_out_of_range_is_refused(alias, program, priority):
    program.enqueue("2026-01-16T12:00:00Z")
    with pytest.raises(refusal(alias, "CheckViolation")):
        program.run(f"UPDATE job_queue SET priority = {priority}")


@pytest.mark.sqlite
def test_a_payload_that_is_not_json_is_refused(sqlite_program):
    with pytest.raises(sqlite3.IntegrityError):
        sqlite_program.enqueue("2026-01-16T12:00:00Z", payload="{image_id: 7}")


@pytest.mark.postgres
def test_a_payload_that_is_not_json_is_refused_on_postgres(databases):
    program = Program("postgres")
    with closing(program.connection), pytest.raises(refusal("postgres", "InvalidTextRepresentation")):
        program.enqueue("2026-01-16T12:00:00Z", payload="{image_id: 7}")


def test_two_rows_with_one_key_are_refused(alias, program):
    program.enqueue("2026-01-16T12:00:00Z", key="import-1")
    with pytest.raises(refusal(alias, "UniqueViolation")):
        program.enqueue("2026-01-16T12:00:01Z", key="import-1")


# Text order is time order

STORED = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@given(one=STORED, other=STORED)
def test_text_order_is_time_order(one, other):
    assert (to_text(one) < to_text(other)) == (one < other)
    assert from_text(to_text(one)) == one


@given(
    one=STORED,
    other=STORED,
    decimals=st.tuples(st.sampled_from([0, 1, 2, 3, 6]), st.sampled_from([0, 1, 2, 3, 6])),
)
def test_text_order_is_time_order_to_the_precision_of_the_coarser_writer(one, other, decimals):
    texts = [foreign_text(moment, count) for moment, count in zip((one, other), decimals, strict=True)]
    coarse = [foreign_text(moment, min(decimals)) for moment in (one, other)]
    if coarse[0] != coarse[1]:
        assert (texts[0] < texts[1]) == (one < other)


def foreign_text(moment, decimals):
    """Write a moment cut to a number of decimals."""
    whole = to_text(moment)
    return whole[:19] + "Z" if decimals == 0 else whole[: 20 + decimals] + "Z"


@pytest.mark.sqlite
def test_every_text_a_foreign_writer_may_store_is_read_to_the_microsecond(sqlite_program):
    digits = "123456789"
    for count in range(1, 10):
        job_id = sqlite_program.enqueue(f"2026-01-16T12:00:00.{digits[:count]}Z")
        read = Job.objects.get(pk=job_id).scheduled_at
        assert read == NOON + timedelta(microseconds=int(digits[:6][:count].ljust(6, "0")))
