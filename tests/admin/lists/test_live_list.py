"""Tests of the rows that an open list asks for."""

from __future__ import annotations

import pytest
from django.urls import reverse

from jobqueue.testing.contract.harness import put, take_one


def rows(visitor, model="job", **query):
    answer = visitor.client.get(reverse(f"admin:jobqueue_{model}_rows"), query)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    return answer.json()["rows"]


@pytest.mark.parametrize("codenames", [("view_job",), ("view_job", "cancel_job")])
def test_the_rows_are_those_of_the_list(queue, sign_in, codenames):
    visitor = sign_in(*codenames)
    first, second = put(queue, tenant="acme"), put(queue, tenant="acme")
    put(queue, tenant="other")
    query = {"q": "tenant:acme", "status": "queued"}
    page = visitor.list(**query)
    address, _every = page.context["cl"].live
    assert f'data-jq-address="{address.replace("&", "&amp;")}"' in page.content.decode()
    found = visitor.client.get(address).json()["rows"]
    assert [job_id for job_id, _cells in found] == [second, first]
    assert found[0][1].count("<t") == page.content.decode().split("<tbody>")[1].split("</tr>")[0].count("<t") - 1
    assert take_one(queue).id == first
    assert [job_id for job_id, _cells in rows(visitor, **query)] == [second]
    assert ">in progress<" in dict(rows(visitor, q="tenant:acme"))[first]


def test_a_list_that_is_not_understood_asks_for_nothing(queue, operator):
    put(queue)
    assert "jq-list-live" not in operator.list(q="statsu:queued").content.decode().split("<main")[1]
    assert rows(operator, q="statsu:queued") == []


@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_rows_take_the_permission_to_see_jobs(queue, sign_in, job_in, model):
    job_id, address = job_in("dead_letter"), reverse(f"admin:jobqueue_{model}_rows")
    assert sign_in("retry_job").client.get(address).status_code == 403
    reader = sign_in("view_job")
    assert [one for one, _cells in rows(reader, model)] == [job_id]
    assert reader.client.post(address).status_code == 405
    assert reader.client.get(address, {"q": "x" * 40_000}).status_code == 400
