"""Tests of the moment field: aware UTC values on both databases, with USE_TZ on and off."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import FieldError, ValidationError
from django.core.management import call_command
from django.core.serializers.base import DeserializationError
from django.db import connections, transaction
from django.db.models import Case, Count, F, Max, Min, Q, Value, When
from django.db.models.functions import (
    Coalesce,
    Extract,
    ExtractHour,
    ExtractYear,
    Greatest,
    Now,
    Trunc,
    TruncDate,
    TruncDay,
    TruncHour,
)

from jobqueue.ids import new_id
from jobqueue.models import Job
from jobqueue.testing.clock import NOON

BERLIN = ZoneInfo("Europe/Berlin")
#: 02:30 in Berlin, twice: before and after the clocks go back on 25 October 2026.
SUMMER_HALF_PAST_TWO = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
WINTER_HALF_PAST_TWO = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
#: 02:30 in Berlin on the day that has none.
SPRING = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)

MOMENTS = [
    NOON,
    NOON + timedelta(microseconds=1),
    SUMMER_HALF_PAST_TWO,
    WINTER_HALF_PAST_TWO,
    SPRING,
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


@pytest.fixture(params=[True, False], ids=["USE_TZ", "no USE_TZ"])
def use_tz(request, settings, alias):
    """Both ways; Postgres' driver is told of it as it connects."""
    settings.USE_TZ = request.param
    connections[alias].close()
    yield request.param
    connections[alias].close()


@pytest.fixture
def jobs(alias, use_tz):
    return Job.objects.using(alias)


def make(jobs, at=NOON, **values):
    return jobs.create(
        id=new_id(), type="resize", payload={}, **{"scheduled_at": at, "created_at": NOON, "updated_at": NOON, **values}
    )


def stored(jobs, *moments):
    return [make(jobs, at).pk for at in moments]


# In and out


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_a_moment_comes_back_aware_and_in_utc(jobs, moment):
    made = make(jobs, moment)
    read = jobs.get(pk=made.pk).scheduled_at
    assert (read, read.tzinfo) == (moment, UTC)


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_a_moment_given_in_another_zone_is_the_same_moment(jobs, moment):
    made = make(jobs, moment.astimezone(BERLIN))
    assert jobs.get(pk=made.pk).scheduled_at == moment


def test_the_hour_that_comes_twice_is_two_hours(jobs):
    first, second = stored(jobs, SUMMER_HALF_PAST_TWO, WINTER_HALF_PAST_TWO)
    assert SUMMER_HALF_PAST_TWO.astimezone(BERLIN).time() == WINTER_HALF_PAST_TWO.astimezone(BERLIN).time()
    assert list(jobs.order_by("scheduled_at").values_list("pk", flat=True)) == [first, second]
    assert jobs.get(scheduled_at=SUMMER_HALF_PAST_TWO.astimezone(BERLIN)).pk == first
    assert jobs.get(scheduled_at=WINTER_HALF_PAST_TWO.astimezone(BERLIN)).pk == second


def test_nothing_comes_back_as_nothing(jobs):
    made = make(jobs)
    assert jobs.get(pk=made.pk).lease_until is None


def test_values_and_values_lists_are_aware_and_in_utc(jobs):
    made = make(jobs, WINTER_HALF_PAST_TWO)
    assert list(jobs.values_list("scheduled_at", "lease_until")) == [(WINTER_HALF_PAST_TWO, None)]
    assert list(jobs.values("pk", "scheduled_at")) == [{"pk": made.pk, "scheduled_at": WINTER_HALF_PAST_TWO}]
    assert jobs.values_list("scheduled_at", flat=True).get().tzinfo is UTC


def test_a_moment_is_updated_by_save_and_by_update(jobs):
    made = make(jobs)
    made.scheduled_at = SUMMER_HALF_PAST_TWO
    made.save()
    assert jobs.get().scheduled_at == SUMMER_HALF_PAST_TWO
    jobs.update(scheduled_at=WINTER_HALF_PAST_TWO, lease_until=F("scheduled_at"))
    row = jobs.get()
    assert (row.scheduled_at, row.lease_until) == (WINTER_HALF_PAST_TWO, SUMMER_HALF_PAST_TWO)


def test_bulk_updates_keep_moments(jobs):
    rows = [make(jobs), make(jobs)]
    rows[0].scheduled_at, rows[1].scheduled_at = SUMMER_HALF_PAST_TWO, WINTER_HALF_PAST_TWO
    jobs.bulk_update(rows, ["scheduled_at"])
    assert set(jobs.values_list("scheduled_at", flat=True)) == {SUMMER_HALF_PAST_TWO, WINTER_HALF_PAST_TWO}


# What is no moment

NAIVE = datetime(2026, 1, 16, 12, 0)  # noqa: DTZ001
LOOKUPS = ["exact", "lt", "lte", "gt", "gte"]


def refused(jobs, value, *errors):
    """Say whether a value is refused by the field, not by a database, when written and in every comparison."""
    for use in (lambda: make(jobs, value), lambda: jobs.update(scheduled_at=value)):
        with transaction.atomic(using=jobs.db), pytest.raises(errors):
            use()
    for lookup in LOOKUPS:
        with pytest.raises(errors):
            jobs.filter(**{f"scheduled_at__{lookup}": value}).count()
    return True


def test_a_naive_moment_is_refused(jobs):
    assert refused(jobs, NAIVE, ValueError)


@pytest.mark.parametrize("text", ["2026-01-16T12:00:00", "2026-01-16 12:00", "2026-01-16"])
def test_text_without_a_zone_is_refused(jobs, text):
    assert refused(jobs, text, ValueError, ValidationError)


@pytest.mark.parametrize("value", ["noon", "", "2026-02-30T12:00:00Z"])
def test_text_that_tells_no_moment_is_refused(jobs, value):
    assert refused(jobs, value, ValidationError)


@pytest.mark.parametrize("value", [date(2026, 1, 16), 1_768_564_800, True], ids=repr)
def test_what_is_no_moment_at_all_is_refused(jobs, value):
    assert refused(jobs, value, ValueError, TypeError, ValidationError)


def test_naive_moments_are_not_compared_in_ranges_and_lists(jobs):
    for condition in ({"scheduled_at__range": (NOON, NAIVE)}, {"scheduled_at__in": [NOON, NAIVE]}):
        with pytest.raises(ValueError, match="aware"):
            jobs.filter(**condition).count()


def test_the_complaint_about_a_naive_moment_names_the_field(jobs):
    with pytest.raises(ValueError, match=r"scheduled_at needs an aware datetime, got the naive datetime\.datetime"):
        make(jobs, NAIVE)


# Comparing


def test_moments_are_compared(jobs):
    early, noon, late = stored(jobs, NOON - timedelta(microseconds=1), NOON, NOON + timedelta(microseconds=1))

    def found(*args, **conditions):
        return list(jobs.filter(*args, **conditions).order_by("scheduled_at").values_list("pk", flat=True))

    assert found(scheduled_at=NOON) == [noon]
    assert found(scheduled_at__lt=NOON) == [early]
    assert found(scheduled_at__lte=NOON) == [early, noon]
    assert found(scheduled_at__gt=NOON) == [late]
    assert found(scheduled_at__gte=NOON) == [noon, late]
    assert found(scheduled_at__range=(NOON, NOON + timedelta(seconds=1))) == [noon, late]
    assert found(scheduled_at__in=[NOON, NOON - timedelta(microseconds=1)]) == [early, noon]
    assert found(~Q(scheduled_at=NOON)) == [early, late]
    assert found(scheduled_at__lt=NOON.astimezone(BERLIN)) == [early]


def test_missing_moments_are_found(jobs):
    free, held = make(jobs), make(jobs, lease_until=NOON)
    assert jobs.get(lease_until__isnull=True) == free
    assert jobs.get(lease_until__isnull=False) == held
    assert jobs.get(lease_until=None) == free


def test_moments_are_ordered(jobs):
    ids = stored(jobs, *MOMENTS)
    by_time = [pk for _moment, pk in sorted(zip(MOMENTS, ids, strict=True))]
    assert list(jobs.order_by("scheduled_at").values_list("pk", flat=True)) == by_time
    assert list(jobs.order_by("-scheduled_at").values_list("pk", flat=True)) == by_time[::-1]
    assert jobs.latest("scheduled_at").pk == by_time[-1]
    assert jobs.earliest("scheduled_at").pk == by_time[0]


def test_moments_are_aggregated(jobs):
    stored(jobs, *MOMENTS)
    assert jobs.aggregate(first=Min("scheduled_at"), last=Max("scheduled_at"), held=Min("lease_until")) == {
        "first": min(MOMENTS),
        "last": max(MOMENTS),
        "held": None,
    }
    later = jobs.aggregate(first=Min("scheduled_at", filter=Q(scheduled_at__gt=NOON)))
    assert later == {"first": NOON + timedelta(microseconds=1)}
    groups = jobs.values("type").annotate(last=Max("scheduled_at"), count=Count("pk"))
    assert list(groups) == [{"type": "resize", "last": max(MOMENTS), "count": len(MOMENTS)}]


def test_columns_of_moments_are_compared_with_each_other(jobs):
    early = make(jobs, NOON - timedelta(seconds=1))
    late = make(jobs, NOON + timedelta(seconds=1))
    assert jobs.get(scheduled_at__lt=F("created_at")) == early
    assert jobs.get(scheduled_at__gt=F("created_at")) == late
    assert jobs.filter(updated_at=F("created_at")).count() == 2


def test_moments_are_chosen_in_the_database(jobs):
    make(jobs, NOON + timedelta(seconds=1))
    moment = Job._meta.get_field("scheduled_at")
    chosen = jobs.annotate(
        either=Coalesce("lease_until", "scheduled_at"),
        last=Greatest("scheduled_at", "created_at"),
        given=Case(When(attempts=0, then=Value(SPRING, output_field=moment)), output_field=moment),
    ).get()
    assert (chosen.either, chosen.last, chosen.given) == (NOON + timedelta(seconds=1),) * 2 + (SPRING,)


# What would find nothing on SQLite, or the wrong thing, is refused on both


@pytest.mark.parametrize(
    "lookup", ["date", "year", "month", "day", "week", "hour", "minute", "time", "year__gte", "date__range", "iso_year"]
)
def test_lookups_of_parts_are_refused(jobs, lookup):
    with pytest.raises(FieldError, match="Unsupported lookup"):
        jobs.filter(**{f"scheduled_at__{lookup}": 1}).count()


@pytest.mark.parametrize(
    "function",
    [
        TruncDay("scheduled_at"),
        TruncHour("scheduled_at"),
        TruncDate("scheduled_at"),
        Trunc("scheduled_at", "month"),
        ExtractYear("scheduled_at"),
        ExtractHour("scheduled_at"),
        Extract("scheduled_at", "week"),
    ],
    ids=lambda function: type(function).__name__,
)
def test_truncating_and_extracting_are_refused(jobs, function):
    make(jobs)
    with pytest.raises((TypeError, ValueError)):
        list(jobs.annotate(part=function))


def test_lists_of_dates_are_refused(jobs):
    make(jobs)
    for verb in (jobs.dates, jobs.datetimes):
        with pytest.raises(TypeError):
            list(verb("scheduled_at", "day"))


@pytest.mark.parametrize(
    "other", [F("created_at") + timedelta(days=1), F("created_at") - timedelta(days=1), Now()], ids=str
)
def test_what_the_database_computes_is_not_compared_with_a_moment(jobs, other):
    """SQLite would compare its own text of a time, with a blank for the T, and be wrong without a word."""
    make(jobs)
    for lookup in LOOKUPS:
        with pytest.raises((FieldError, TypeError, ValueError)):
            jobs.filter(**{f"scheduled_at__{lookup}": other}).count()


# Serialization


def dumped(alias, form):
    out = StringIO()
    call_command("dumpdata", "jobqueue.Job", database=alias, format=form, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize(("form", "precision"), [("json", 1000), ("jsonl", 1000), ("xml", 1)])
def test_jobs_survive_dumpdata_and_loaddata(jobs, alias, tmp_path, form, precision):
    """Django's JSON keeps milliseconds of any datetime, its XML all there is."""
    moments = [moment.replace(microsecond=moment.microsecond // precision * precision) for moment in MOMENTS]
    ids = stored(jobs, *moments)
    make(jobs, lease_until=WINTER_HALF_PAST_TWO)
    before = list(jobs.order_by("pk").values())
    file = tmp_path / f"jobs.{form}"
    file.write_text(dumped(alias, form))
    jobs.all().delete()
    call_command("loaddata", file, database=alias, verbosity=0)
    assert list(jobs.order_by("pk").values()) == before
    assert jobs.filter(pk__in=ids, scheduled_at__in=moments).count() == len(ids)


def test_a_dumped_moment_is_iso_8601_in_utc(jobs, alias):
    make(jobs, WINTER_HALF_PAST_TWO)
    ((row,), text) = json.loads(dumped(alias, "json")), dumped(alias, "xml")
    assert row["fields"]["scheduled_at"] == "2026-10-25T01:30:00Z"
    assert "2026-10-25T01:30:00.000000Z" in text


def test_a_dump_with_a_naive_moment_is_not_loaded(jobs, alias, tmp_path):
    make(jobs)
    file = tmp_path / "jobs.json"
    file.write_text(dumped(alias, "json").replace("2026-01-16T12:00:00Z", "2026-01-16T12:00:00"))
    jobs.all().delete()
    with pytest.raises(DeserializationError, match="is not a moment"):
        call_command("loaddata", file, database=alias, verbosity=0)
    assert jobs.count() == 0


@pytest.mark.parametrize("text", ["2026-10-25T01:30:00Z", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00.000000Z"])
def test_text_with_a_zone_is_read(text):
    assert Job._meta.get_field("scheduled_at").to_python(text) == WINTER_HALF_PAST_TWO
