"""Tests of the export of what is listed: contents, redaction, spreadsheets, and who may."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.urls import reverse

from jobqueue.admin.lists import export
from jobqueue.admin.search import results
from jobqueue.models import Job
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure
from jobqueue.testing.contract.harness import draft, put, put_all, settle, take_one

SECRET = "hunter2-and-more"
FORMS = ("csv", "json")


def address(form, model="job"):
    return reverse(f"admin:jobqueue_{model}_export_{form}")


def exported(visitor, form, model="job", **query):
    """The rows of an export."""
    answer = visitor.client.get(address(form, model), query)
    assert answer.status_code == 200
    assert answer.streaming
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{model}s.{form}"'
    text = b"".join(answer.streaming_content).decode()
    return json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("form", FORMS)
def test_all_that_is_listed_is_exported_in_its_order(queue, operator, monkeypatch, form):
    monkeypatch.setattr(export, "BATCH", 3)
    ids = put_all(queue, *(draft(tenant="acme", priority=2) for _ in range(8)))
    put(queue, tenant="other")
    rows = exported(operator, form, q="tenant:acme")
    assert [row["id"] for row in rows] == ids[::-1]
    assert {(row["type"], row["status"], str(row["priority"])) for row in rows} == {("resize", "queued", "2")}
    assert tuple(rows[0]) == export.FIELDS
    assert exported(operator, form, q="tenant:nobody") == []


@pytest.mark.parametrize("form", FORMS)
def test_the_list_links_to_the_export_of_what_it_shows(queue, operator, job_in, form):
    dead, _other = job_in("dead_letter", tenant="acme"), job_in("completed", tenant="acme")
    for model, query in (("job", {"q": "tenant:acme", "status": "dead_letter"}), ("deadletter", {"q": "tenant:acme"})):
        page = operator.list(model, **query)
        (link,) = [at for label, at in page.context["cl"].exports if label == form.upper()]
        assert link.replace("&", "&amp;") in page.content.decode()
        text = b"".join(operator.client.get(link).streaming_content).decode()
        assert dead in text
        assert len(text.splitlines()) == {"csv": 2, "json": 3}[form]


@pytest.mark.parametrize("form", FORMS)
def test_no_export_has_a_secret(queue, operator, form):
    payload = json.dumps({"user": {"password": SECRET, "name": "Ada"}, "api_key": "k-123456"})
    put(queue, payload=payload)
    failure = Failure.of(Ending.FAILED, error_class="OSError", message=f"login with {SECRET} refused, token=t-987654")
    assert settle(queue, settled(take_one(queue), Dead("attempts used up"), failure)) == ()
    text = b"".join(operator.client.get(address(form)).streaming_content).decode()
    assert [one for one in (SECRET, "k-123456", "t-987654") if one in text] == []
    assert "[redacted]" in text
    assert "Ada" in text
    assert exported(operator, form, q="error:t-987654") == []


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])  # noqa: RUF001
def test_no_cell_of_a_spreadsheet_is_a_formula(queue, operator, text):
    put(queue, text, tenant=text)
    (row,) = exported(operator, "csv")
    assert (row["type"], row["tenant"]) == (f"'{text}", f"'{text}")
    assert exported(operator, "json")[0]["type"] == text


@pytest.mark.parametrize(
    "payload", ['"text"', "[1, 2]", "null", "12345678901234567890", '{"a": "\\ud800"}', "[" * 400 + "]" * 400]
)
def test_a_payload_of_any_form_is_exported(queue, operator, payload):
    job_id = put(queue)
    try:
        Job.objects.using(queue.alias).filter(pk=job_id).update(payload=json.loads(payload))
    except Exception:
        pytest.skip("the database takes no such JSON")
    for form in FORMS:
        assert [row["id"] for row in exported(operator, form)] == [job_id]


def test_an_export_ends_where_the_list_ends(queue, operator, monkeypatch):
    monkeypatch.setattr(results, "CAP", 2)
    ids = put_all(queue, draft(), draft(), draft())
    assert [row["id"] for row in exported(operator, "json")] == ids[:0:-1]


def test_a_job_that_is_purged_meanwhile_is_left_out(queue, operator, monkeypatch):
    monkeypatch.setattr(export, "BATCH", 1)
    first, second = put(queue), put(queue)
    answer = operator.client.get(address("json"))
    stream = iter(answer.streaming_content)
    assert second in next(stream).decode()
    queue.operator.purge([first])
    assert first not in b"".join(stream).decode()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_an_export_takes_the_permission_to_see_jobs_and_changes_nothing(queue, sign_in, job_in, form, model):
    job_in("dead_letter")
    before = list(Job.objects.using(queue.alias).values())
    assert sign_in("retry_job", "purge_job").client.get(address(form, model)).status_code == 403
    reader = sign_in("view_job")
    assert reader.client.get(address(form, model)).status_code == 200
    assert reader.client.head(address(form, model)).status_code == 200
    assert reader.client.post(address(form, model)).status_code == 405
    assert reader.client.get(address(form, model), {"q": "x" * 40_000}).status_code == 400
    wrong = reader.client.get(address(form, model), {"q": "statsu:queued"}, follow=True)
    assert wrong.context["cl"].complaint
    assert list(Job.objects.using(queue.alias).values()) == before
