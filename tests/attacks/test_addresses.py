"""Tests of queries in addresses that no page wrote: each page answers, or refuses with a message."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.urls import URLPattern, reverse

from jobqueue.testing.contract.harness import put
from jobqueue.testing.contract.ports.registering import worker

OWNER = "host:1:nonce"
NAMES = (
    *("q", "o", "p", "all", "e", "below", "status", "after", "queue", "type", "window", "scope"),
    *("name", "fingerprint", "order", "text", "why"),
    *("token", "tried", "created", "known", "of"),
)
VALUES = (
    *("\0", "", " ", "x" * 5_000, "-1", "9" * 30, "\uff11", "\xb2", "%00"),
    *("'\"<b>", "\ud7ff\U0010ffff", "[]", "*", "a:b", '"'),
)


def pages():
    """The addresses of all pages that need no key of a row, or the key of one that exists."""
    for model, of in admin.site._registry.items():
        if model._meta.app_label == "jobqueue":
            yield from ((one.name, str(one.pattern)) for one in of.urls if isinstance(one, URLPattern) and one.name)


PAGES = sorted(set(pages()))
#: What one database takes and the other refuses. All others are alike for both.
DISPUTED = ("\0", "9" * 30, "%00", "\ud7ff\U0010ffff", "x" * 5_000)
TRIED = [pytest.param("default", one, marks=pytest.mark.sqlite) for one in VALUES]
TRIED += [pytest.param("postgres", one, marks=pytest.mark.postgres) for one in DISPUTED]


@pytest.mark.parametrize(("alias", "value"), TRIED, indirect=["alias"])
def test_every_page_answers_whatever_stands_in_its_address(queue, operator, value):
    queue.workers.enlist(worker(OWNER))
    job_id = put(queue)
    wrong = []
    operator.client.raise_request_exception = False
    for name, pattern in PAGES:
        key = OWNER if "worker" in name else job_id
        address = reverse(f"admin:{name}", args=[key] if "<" in pattern else [])
        answer = operator.client.get(address, dict.fromkeys(NAMES, value))
        alone = operator.client.get(address, {"q": "type:x", "queue": value, "fingerprint": value, "type": value})
        wrong += [name for one in (answer, alone) if one.status_code >= 500]
    assert wrong == []


@pytest.mark.parametrize("key", ["_00", "a_00b", "_ED_A0_80", "_", "__", "_FF", "x" * 3_000, "a_0Ab", "%2500"])
def test_every_page_answers_for_a_key_that_no_row_has(queue, operator, key):
    wrong = []
    operator.client.raise_request_exception = False
    for name, pattern in PAGES:
        if "<" in pattern:
            answers = [ask(reverse(f"admin:{name}", args=[key])) for ask in (operator.client.get, operator.client.post)]
            wrong += [name for one in answers if one.status_code >= 500]
    assert wrong == []
