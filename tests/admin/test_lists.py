"""Lists: what a search finds, what a filter leaves, how many are counted, and what is never fetched."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from jobqueue.admin import listing
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import draft, put, put_all
from tests.admin.conftest import STATUSES, shown


def choices(response, title):
    """What one filter offers."""
    (found,) = [spec for spec in response.context["cl"].filter_specs if str(spec.title) == title]
    return [str(one["display"]) for one in found.choices(response.context["cl"]) if "display" in one]


# Search


def test_a_job_is_found_by_id_by_its_beginning_and_in_small_letters(queue, operator):
    ids = put_all(queue, *(draft(id=f"01M7QNW73V4P5RQS9WP6M1XX1{end}") for end in "ABC"))
    other = put_all(queue, draft(id="01M7QNW84V4P5RQS9WP6M1XX1A"))
    assert shown(operator.list(q=ids[0])) == ids[:1]
    assert shown(operator.list(q=f" {ids[1].lower()} ")) == ids[1:2]
    assert shown(operator.list(q=ids[0][:10])) == ids[::-1]
    assert shown(operator.list(q=ids[0][:5])) == other + ids[::-1]


def test_an_id_of_another_form_is_found_by_all_of_it(queue, operator):
    put(queue, id="import:7/a_b")
    assert shown(operator.list(q="import:7/a_b")) == ["import:7/a_b"]
    assert shown(operator.list(q="import")) == []
    assert operator.page("import_3A7_2Fa_5Fb").status_code == 200


def test_a_job_is_found_by_key_type_and_tenant(queue, operator):
    keyed = put(queue, idempotency_key="order-7")
    rare = put(queue, "rare")
    theirs = put(queue, tenant="acme")
    assert [shown(operator.list(q=term)) for term in ("order-7", "rare", "acme")] == [[keyed], [rare], [theirs]]


@pytest.mark.parametrize("term", ["image_id", "%", "_", "'", '"', "\\", "\0", "order", "ä" * 500, "0" * 26, "resiz"])
def test_a_search_for_anything_else_finds_nothing_and_harms_nothing(queue, operator, term):
    put(queue, idempotency_key="order-7")
    answer = operator.list(q=term)
    assert answer.status_code == 200
    assert term == "\0" or shown(answer) == []


# Filters


def test_each_status_has_its_filter(queue, operator, job_in):
    ids = {status: job_in(status) for status in STATUSES if status != "queued"} | {"queued": job_in("queued")}
    assert {status: shown(operator.list(status=status)) for status in STATUSES} == {
        status: [job_id] for status, job_id in ids.items()
    }


def test_types_and_queues_are_filtered_without_asking_the_jobs(queue, operator):
    rare, elsewhere = put(queue, "rare"), put(queue, queue="elsewhere")
    assert shown(operator.list(type="rare")) == [rare]
    assert shown(operator.list(queue="elsewhere")) == [elsewhere]
    queue.pause(Scope.QUEUE, "closed")
    response = operator.list()
    assert choices(response, "type") == ["All", *sorted(registry.names)]
    assert choices(response, "queue") == ["All", "closed", "default", "images"]
    assert "rare" in choices(operator.list(type="rare"), "type")


def test_the_time_of_creation_is_filtered(queue, operator):
    now = SYSTEM.now()
    ages = {"15m": 14, "1h": 59, "1d": 23 * 60, "7d": 6 * 24 * 60, None: 8 * 24 * 60}
    ids = put_all(queue, *(draft() for _ in ages))
    for job_id, minutes in zip(ids, ages.values(), strict=True):
        Job.objects.using(queue.alias).filter(pk=job_id).update(created_at=now - timedelta(minutes=minutes))
    for found, window in enumerate(["15m", "1h", "1d", "7d"], start=1):
        assert shown(operator.list(created=window)) == ids[:found][::-1]


@pytest.mark.parametrize("query", [{"status": "x"}, {"type": "\0"}, {"queue": "'"}, {"created": "1y"}])
def test_a_filter_for_what_does_not_exist_finds_nothing(queue, operator, query):
    put(queue)
    answer = operator.list(**query)
    assert (answer.status_code, shown(answer)) == (200, [])


def test_a_page_or_an_order_that_does_not_exist_harms_nothing(queue, operator):
    put(queue)
    for query in ({"p": "99"}, {"p": "x"}, {"o": "99.-3"}):
        assert operator.list(**query).status_code in (200, 302)


@pytest.mark.parametrize("lookup", ["payload__password__startswith", "result__contains", "error__contains", "nonsense"])
def test_what_is_not_shown_cannot_be_asked_for_in_the_address(queue, operator, lookup):
    put(queue, payload='{"password": "hunter2"}')
    assert operator.list(**{lookup: "h"}).status_code == 400


def test_many_types_are_offered_in_a_box_to_search_in(queue, operator, monkeypatch):
    monkeypatch.setattr("jobqueue.admin.filters.MANY", 3)
    put(queue)
    page = operator.list().content.decode()
    assert 'class="django-admin-list-filter admin-autocomplete"' in page
    assert "django_admin_list_filter.js" in page
    assert "?type=resize_image" in page


def test_dead_letters_are_a_list_of_their_own(queue, operator, job_in):
    dead = job_in("dead_letter")
    job_in("failed")
    assert shown(operator.list("deadletter")) == [dead]
    assert shown(operator.list("deadletter", q=dead[:12])) == [dead]


# Counting


def test_a_count_stops_at_the_cap_and_says_that_there_are_more(queue, operator, monkeypatch):
    monkeypatch.setattr(listing, "CAP", 3)
    put_all(queue, *(draft() for _ in range(3)))
    response = operator.list()
    assert response.context["cl"].result_count == 3
    assert "jq-more" not in response.content.decode()
    put(queue)
    response = operator.list()
    assert response.context["cl"].result_count == 3
    assert "3+ jobs match." in response.content.decode()


def test_a_list_fetches_no_large_column_and_no_more_queries_for_more_rows(queue, operator, job_in):
    job_in("dead_letter")
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(
            connections[queue.alias],
        ) as queries:
            operator.list()
        counts.append(len(queries))
        page = [one["sql"] for one in queries if "error_start" in one["sql"]]
        assert len(page) == 1
        selected = page[0].split(" FROM ")[0]
        assert not [name for name in ("payload", "result", "context", "progress") if f'."{name}"' in selected]
        assert not [one for one in queries if "DISTINCT" in one["sql"]]
        put_all(queue, *(draft() for _ in range(20)))
        job_in("failed")
    assert counts[0] == counts[1]
