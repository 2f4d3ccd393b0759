"""Tests of filters, which must mean the same on every backend."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.ids import UlidFactory
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, Filter
from jobqueue.states import JobStatus
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.contract.harness import Contract, bury, draft, finish, put, put_all, settle, take, take_one

PAYLOAD = {
    "number": 7,
    "text": "7",
    "half": 0.5,
    "whole": 7.0,
    "large": 12345678901234567,
    "yes": True,
    "one": 1,
    "no": False,
    "nothing": None,
    "words": {"yes": "true", "nothing": "null", "empty": ""},
    "list": ["a", {"deep": "b"}, ["c"]],
    "years": {"2026": "now", "0": "then"},
    "name of one": "x",
    "straße": "ß",
    "%s": "percent",
    "a'b": "quote",
    "$": {"#": "signs"},
    "object": {"a": 1},
}

FOUND: list[tuple[str, object]] = [
    ("number", 7),
    ("number", 7.0),
    ("text", "7"),
    ("text", 7),
    ("half", 0.5),
    ("whole", 7),
    ("large", 12345678901234567),
    ("yes", True),
    ("one", 1),
    ("no", False),
    ("nothing", None),
    ("words.yes", True),
    ("words.yes", "true"),
    ("words.nothing", None),
    ("words.empty", ""),
    ("list.0", "a"),
    ("list.1.deep", "b"),
    ("list.2.0", "c"),
    ("years.2026", "now"),
    ("years.0", "then"),
    ("name of one", "x"),
    ("straße", "ß"),
    ("%s", "percent"),
    ("a'b", "quote"),
    ("$.#", "signs"),
]
NOT_FOUND: list[tuple[str, object]] = [
    ("number", "7"),
    ("number", 8),
    ("text", "07"),
    ("text", 8),
    ("large", 12345678901234568),
    ("yes", 1),
    ("yes", "true"),
    ("one", True),
    ("no", 0),
    ("no", None),
    ("nothing", "null"),
    ("missing", None),
    ("missing", ""),
    ("words.missing.deep", None),
    ("list.3", None),
    ("list.00000000001", "a"),
    ("list.a", "a"),
    ("number.0", 7),
    ("object", '{"a":1}'),
    ("number__gt", 1),
    ("text__contains", "7"),
    ("$", 7),
    ("*", 7),
    ("number') OR 1=1 --", 7),
    ('"', "x"),
    ("\\", "x"),
]


class FindContract(Contract):
    """Tests of filters by payload, id, key, parent, owner and fingerprint."""

    @pytest.mark.parametrize("escaped", [False, True], ids=["as text", "escaped"])
    def test_a_value_in_a_payload_is_found_by_its_path_and_type(self, backend: Backend, escaped: bool) -> None:
        mine = put(backend, payload=json.dumps(PAYLOAD, ensure_ascii=escaped))
        put_all(backend, draft(payload="{}"), draft(payload="[7]"), draft(payload='"7"'))
        for pairs, expected in ((FOUND, [mine]), (NOT_FOUND, [])):
            for pair in pairs:
                assert backend.jobs.find_ids(Filter(payload=(pair,)), 10) == expected, pair
                assert backend.jobs.count(Filter(payload=(pair,))) == len(expected), pair

    def test_a_payload_that_is_an_array_is_found_by_place(self, backend: Backend) -> None:
        mine = put(backend, payload='[7, {"x": "y"}]')
        put(backend, payload='{"0": 8}')
        keyed = put(backend, payload='{"0": 7}')
        assert backend.jobs.find_ids(Filter(payload=(("0", 7),)), 10) == [mine, keyed]
        assert backend.jobs.find_ids(Filter(payload=(("1.x", "y"), ("0", 7))), 10) == [mine]
        assert backend.jobs.find_ids(Filter(payload=(("1.x", "y"), ("0", 8))), 10) == []

    def test_a_filter_names_ids_keys_parents_and_owners(self, backend: Backend) -> None:
        first = put(backend, idempotency_key="order-7")
        second, third = put_all(backend, draft(parent_id=first), draft())
        claim = take_one(backend, owner="me:1:2")

        def found(**wanted: Any) -> list[str]:
            return backend.jobs.find_ids(Filter(**wanted), 10)

        assert found(ids=frozenset({first, third, "nosuch"})) == [first, third]
        assert found(ids=frozenset({first}), idempotency_key="other") == []
        assert found(idempotency_key="order-7") == [first]
        assert found(parent_id=first) == [second]
        assert found(lease_owner="me:1:2") == [claim.id]

    def test_a_filter_names_a_kind_of_failure(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(3)))
        known, unknown = take_one(backend), take_one(backend)
        failure = Failure.of(Ending.FAILED, error_class="OSError", message="on fire", fingerprint="3f2a")
        assert settle(backend, settled(known, Dead("attempts used up"), failure)) == ()
        bury(backend, unknown)
        assert backend.jobs.find_ids(Filter(fingerprint="3f2a"), 10) == [known.id]
        assert unknown.id in backend.jobs.find_ids(Filter(fingerprint=""), 10)
        assert known.id not in backend.jobs.find_ids(Filter(fingerprint=""), 10)


def _filters(moment: datetime, first: str, later: str) -> list[Filter]:
    """List filters that a backend may search in different ways."""
    dead, failed = frozenset({JobStatus.DEAD_LETTER}), frozenset({JobStatus.FAILED})
    mail, greet = frozenset({"mail"}), frozenset({"greet"})
    return [
        Filter(),
        *(Filter(statuses=frozenset({status})) for status in JobStatus),
        *(Filter(statuses=frozenset({status}), queues=mail) for status in JobStatus),
        Filter(statuses=dead | failed),
        Filter(statuses=dead | failed, queues=mail, types=greet),
        Filter(statuses=dead, queues=mail, types=greet),
        Filter(statuses=dead, types=greet),
        Filter(statuses=dead, error="ON fire"),
        Filter(statuses=dead, fingerprint="3f2a"),
        Filter(statuses=dead, fingerprint=""),
        Filter(statuses=dead, fingerprint="3f2a", tenant="acme"),
        Filter(types=greet),
        Filter(queues=mail),
        Filter(tenant="acme"),
        Filter(error="ON fire"),
        Filter(fingerprint="3f2a"),
        Filter(payload=(("x.y", 1),)),
        Filter(created_after=moment),
        Filter(created_before=moment),
        Filter(created_before=moment, statuses=dead),
        Filter(ids=frozenset({first, "row-7", "nosuch"})),
        Filter(ids=frozenset({first}), queues=mail),
        Filter(id_prefix=later[:8]),
        Filter(id_prefix=later[:8], types=greet),
        Filter(id_prefix="row-"),
        Filter(id_prefix="nosuch"),
        Filter(idempotency_key="order-7"),
        Filter(idempotency_key="order-7", statuses=dead),
        Filter(parent_id=first),
        Filter(parent_id=first, statuses=dead | {JobStatus.QUEUED}),
        Filter(parent_id=first, queues=mail),
        Filter(lease_owner="me:1:2"),
    ]


class SearchContract(Contract):
    """Tests of searches, which find the same jobs as ``find``."""

    @pytest.fixture
    def filters(self, backend: Backend, clock: VirtualClock) -> list[Filter]:
        """Store jobs of many kinds, and return filters that some of them match."""
        new_id = UlidFactory(clock)
        first = put(backend, id=new_id(), idempotency_key="order-7", tenant="acme", payload='{"x": {"y": 1}}')
        put_all(backend, *(draft(id=new_id(), parent_id=first) for _ in range(3)))
        failure = Failure.of(Ending.FAILED, error_class="OSError", message="disk on fire", fingerprint="3f2a")
        for claim in take(backend, 2):
            assert settle(backend, settled(claim, Dead("attempts used up"), failure)) == ()
        assert finish(backend, take_one(backend))
        clock.advance(600)
        later = put_all(backend, *(draft("greet", id=new_id(), queue="mail") for _ in range(5)))
        bury(backend, take_one(backend, types=frozenset({"greet"})))
        take_one(backend, owner="me:1:2", types=frozenset({"greet"}))
        assert backend.operator.cancel(later[3:4]).done == tuple(later[3:4])
        put(backend, id="row-7", queue="mail", parent_id=first)
        return _filters(clock.now(), first, later[0])

    def test_a_search_finds_the_same_as_find_the_newest_first(self, backend: Backend, filters: list[Filter]) -> None:
        for wanted in filters:
            expected, found = backend.jobs.find_ids(wanted, 100), backend.jobs.search(wanted, 100)
            assert found[:] == expected[::-1], wanted
            assert (found.found, len(found), found.more) == (len(expected), len(expected), False), wanted
            assert (found.is_part, found.back_to) == (False, None), wanted
            assert found.searched >= len(expected), wanted
            assert backend.jobs.search(wanted, 100, oldest_first=True)[:] == expected, wanted
            assert backend.jobs.count_matches(wanted, 100) == (len(expected), False, False), wanted

    def test_a_search_is_read_in_pages(self, backend: Backend, filters: list[Filter]) -> None:
        for wanted in filters:
            found = backend.jobs.search(wanted, 100)
            pages = [found[start : start + 2] for start in range(0, len(found) + 2, 2)]
            assert [one for page in pages for one in page] == backend.jobs.find_ids(wanted, 100)[::-1], wanted
            assert found[3:1] == []

    def test_a_search_stops_at_its_cap_and_says_that_there_are_more(
        self, backend: Backend, filters: list[Filter]
    ) -> None:
        for wanted in filters:
            expected = backend.jobs.find_ids(wanted, 100)
            if len(expected) < 2:
                continue
            cap = len(expected) - 1
            found = backend.jobs.search(wanted, cap)
            assert (found[:], len(found), found.more) == (expected[:0:-1], cap, True), wanted
            assert backend.jobs.count_matches(wanted, cap) == (cap, True, False), wanted
            found = backend.jobs.search(wanted, cap, oldest_first=True)
            assert found[:] in (expected[:-1], expected[1:]), wanted
            assert found.more, wanted
