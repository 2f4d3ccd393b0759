"""Finding: what a filter asks of a payload and of keys means the same on every backend."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, Filter
from jobqueue.testing.contract.harness import Contract, bury, draft, put, put_all, settle, take_one

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
    """What a filter finds by payload, id, key, parent, owner and kind of failure."""

    @pytest.mark.parametrize("escaped", [False, True], ids=["as text", "escaped"])
    def test_a_value_in_a_payload_is_found_by_its_path_and_type(self, backend: Backend, escaped: bool) -> None:
        mine = put(backend, payload=json.dumps(PAYLOAD, ensure_ascii=escaped))
        put_all(backend, draft(payload="{}"), draft(payload="[7]"), draft(payload='"7"'))
        for pairs, expected in ((FOUND, [mine]), (NOT_FOUND, [])):
            for pair in pairs:
                assert backend.find_ids(Filter(payload=(pair,)), 10) == expected, pair
                assert backend.count(Filter(payload=(pair,))) == len(expected), pair

    def test_a_payload_that_is_an_array_is_found_by_place(self, backend: Backend) -> None:
        mine = put(backend, payload='[7, {"x": "y"}]')
        put(backend, payload='{"0": 8}')
        keyed = put(backend, payload='{"0": 7}')
        assert backend.find_ids(Filter(payload=(("0", 7),)), 10) == [mine, keyed]
        assert backend.find_ids(Filter(payload=(("1.x", "y"), ("0", 7))), 10) == [mine]
        assert backend.find_ids(Filter(payload=(("1.x", "y"), ("0", 8))), 10) == []

    def test_a_filter_names_ids_keys_parents_and_owners(self, backend: Backend) -> None:
        first = put(backend, idempotency_key="order-7")
        second, third = put_all(backend, draft(parent_id=first), draft())
        claim = take_one(backend, owner="me:1:2")

        def found(**wanted: Any) -> list[str]:
            return backend.find_ids(Filter(**wanted), 10)

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
        assert backend.find_ids(Filter(fingerprint="3f2a"), 10) == [known.id]
        assert unknown.id in backend.find_ids(Filter(fingerprint=""), 10)
        assert known.id not in backend.find_ids(Filter(fingerprint=""), 10)
