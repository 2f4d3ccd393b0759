"""Tests of filters, which must mean the same on every backend."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.ids import UlidFactory
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, Filter, Range
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

    def test_the_queues_of_jobs_that_are_not_completed_are_named(self, backend: Backend) -> None:
        assert backend.jobs.queues(10) == []
        put_all(backend, *(draft(queue=name) for name in ("mail", "dead", "gone", "busy", "done", "mail", "a b")))
        bury(backend, take_one(backend, queues=frozenset({"dead"})))
        assert finish(backend, take_one(backend, queues=frozenset({"done"})))
        take_one(backend, queues=frozenset({"busy"}))
        gone = backend.jobs.find_ids(Filter(queues=frozenset({"gone"})), 1)
        assert backend.operator.cancel(gone).done == tuple(gone)
        assert backend.jobs.queues(10) == ["a b", "busy", "dead", "gone", "mail"]
        assert backend.jobs.queues(1) == ["a b", "busy", "dead", "gone"]

    def test_a_filter_names_a_kind_of_failure(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(3)))
        known, unknown = take_one(backend), take_one(backend)
        failure = Failure.of(Ending.FAILED, error_class="OSError", message="on fire", fingerprint="3f2a")
        assert settle(backend, settled(known, Dead("attempts used up"), failure)) == ()
        bury(backend, unknown)
        assert backend.jobs.find_ids(Filter(fingerprint="3f2a"), 10) == [known.id]
        assert unknown.id in backend.jobs.find_ids(Filter(fingerprint=""), 10)
        assert known.id not in backend.jobs.find_ids(Filter(fingerprint=""), 10)

    def test_a_filter_names_an_error_by_its_text_or_its_class(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(4)))
        texts = {"TimeoutError": "nobody answered", "requests.ReadTimeout": "gone", "OSError": "timeout of the disk"}
        ids = []
        for error_class, message in texts.items():
            failure = Failure.of(Ending.FAILED, error_class=error_class, message=message)
            ids.append((claim := take_one(backend)).id)
            assert settle(backend, settled(claim, Dead("attempts used up"), failure)) == ()
        assert backend.jobs.find_ids(Filter(error="timeout"), 10) == ids
        assert backend.jobs.find_ids(Filter(error_class="timeout"), 10) == ids[:2]
        assert backend.jobs.find_ids(Filter(error_class="readtimeout", error="GONE"), 10) == ids[1:2]
        assert backend.operator.retry(ids[:1]).done == tuple(ids[:1])
        assert backend.jobs.find_ids(Filter(error="timeout"), 10) == ids[1:]

    def test_a_filter_names_ends_numbers_and_reasons(self, backend: Backend, clock: VirtualClock) -> None:
        waiting, cancelled = put_all(backend, draft(), draft(priority=2))
        assert backend.operator.cancel([cancelled]).done == (cancelled,)
        before = clock.now()
        clock.advance(600)
        claim = take_one(backend)
        bury(backend, claim)

        def found(**wanted: Any) -> list[str]:
            return backend.jobs.find_ids(Filter(**wanted), 10)

        assert claim.id == waiting
        assert found(ended_after=before + timedelta(seconds=1)) == [waiting]
        assert found(ended_before=before + timedelta(seconds=1)) == [cancelled]
        assert found(priority=Range(1, 4)) == [cancelled]
        assert found(priority=Range(5)) == [waiting]
        assert found(attempts=Range(1, 1)) == [waiting]
        assert found(end_reasons=frozenset({"cancelled", "expired"})) == [cancelled]

    def test_a_filter_excludes_what_others_select(self, backend: Backend) -> None:
        first, second, third = put_all(backend, draft(tenant="acme"), draft("greet"), draft("greet", tenant="acme"))

        def left_by(*excluded: Filter, **wanted: Any) -> list[str]:
            return backend.jobs.find_ids(Filter(excluded=excluded, **wanted), 10)

        assert left_by(Filter(types=frozenset({"greet"}))) == [first]
        assert left_by(Filter(tenant="acme")) == [second]
        assert left_by(Filter(types=frozenset({"greet"}), tenant="acme")) == [first, second]
        assert left_by(Filter(types=frozenset({"greet"})), Filter(tenant="acme")) == []
        assert left_by(Filter(error_class="x"), Filter(fingerprint="3f2a"), tenant="acme") == [first, third]
        assert left_by(Filter(fingerprint="")) == []


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
        Filter(statuses=dead | failed, ended_before=moment),
        Filter(ended_after=moment),
        Filter(statuses=dead, error_class="os"),
        Filter(statuses=dead, priority=Range(5, 5), attempts=Range(1)),
        Filter(statuses=failed, end_reasons=frozenset({"cancelled"})),
        Filter(statuses=dead | failed, excluded=(Filter(queues=mail),)),
        Filter(excluded=(Filter(queues=mail), Filter(tenant="acme"))),
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

    def test_a_search_goes_on_where_an_earlier_one_ended(self, backend: Backend, filters: list[Filter]) -> None:
        for wanted in filters:
            expected, ids, rest = backend.jobs.find_ids(wanted, 100)[::-1], [], None
            for _ in range(100):
                found = backend.jobs.search(wanted, 2, before_id=rest)
                ids += found[:]
                if (rest := found.rest_before) is None:
                    break
            assert ids == expected, wanted

    @pytest.mark.parametrize("most", [1, 2, 3, 1000])
    def test_a_walk_finds_the_same_as_find_in_steps(self, backend: Backend, filters: list[Filter], most: int) -> None:
        for wanted in filters:
            found: list[str] = []
            last, steps = None, 0
            while steps == 0 or last is not None:
                step = backend.jobs.walk(wanted, most, last)
                found += step.ids
                assert step.last is None or last is None or step.last > last, wanted
                last, steps = step.last, steps + 1
            assert found == backend.jobs.find_ids(wanted, 100), wanted
