"""Tests of the reading of queued and running jobs."""

from __future__ import annotations

import json
from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.records import Progress
from jobqueue.records.outstanding import Behind
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import LEASE, Contract, bury, draft, put, put_all, take, take_one

MINUTE = timedelta(minutes=1)


class OutstandingContract(Contract):
    """Tests of the reader of queued and running jobs."""

    def test_running_jobs_are_listed_by_the_end_of_their_leases(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft(), draft(), draft(timeout=MINUTE))
        first = take_one(backend, "first")
        clock.advance(1)
        second, third = take(backend, 2, "second")
        backend.progress([Progress(second.id, second.fence, "second", '{"percent": 1}')])
        backend.operator.cancel([third.id])
        put(backend)
        found = {one.id: one for one in backend.outstanding.running(10)}
        assert next(iter(found)) == first.id
        assert found.keys() == {first.id, second.id, third.id}
        assert [one.id for one in backend.outstanding.running(1)] == [first.id]
        one = found[first.id]
        assert (one.type, one.queue, one.owner, one.attempts) == ("resize", "default", "first", 1)
        assert (one.started_at, one.lease_until, one.timeout) == (NOON, NOON + LEASE, None)
        assert (one.reports, found[second.id].reports) == (False, True)
        assert (one.cancel_requested_at, found[third.id].timeout) == (None, MINUTE)
        assert found[third.id].cancel_requested_at == NOON + timedelta(seconds=1)

    def test_queued_jobs_are_read_page_by_page(self, backend: Backend) -> None:
        kinds = [("mail", "greet"), ("default", "resize"), ("mail", "resize"), ("mail", "greet"), ("default", "rare")]
        put_all(backend, *(draft(kind, queue=queue, priority=9 - n) for n, (queue, kind) in enumerate(kinds)))
        put_all(backend, *(draft("greet", queue="mail", delay=n * MINUTE, tenant="t") for n in range(5)))
        everything = backend.outstanding.queued(100)
        assert [(one.queue, one.type) for one in everything] == sorted([*kinds, *[("mail", "greet")] * 5])
        read, page = [], backend.outstanding.queued(2)
        while page:
            read += page
            page = backend.outstanding.queued(2, page[-1].place)
        assert read == everything
        assert json.loads(everything[0].payload) == {"image_id": 7}
        assert (everything[0].payload_version, everything[0].tenant, everything[0].created_at) == (1, "", NOON)
        assert {one.tenant for one in everything[2:7]} == {"t"}

    def test_the_rest_of_a_queue_and_type_can_be_left_out(self, backend: Backend) -> None:
        put_all(backend, draft("greet"), draft("greet"), draft("resize"), draft("greet", queue="mail"))
        read = [
            one
            for place in (("default", "greet"), ("default", "resize"), ("mail", "greet"))
            for one in backend.outstanding.queued(1, Behind(*place))
        ]
        assert [(one.queue, one.type) for one in read] == [("default", "resize"), ("mail", "greet")]
        assert backend.outstanding.queued(5, Behind("default", "aaa"))[0].type == "greet"

    def test_jobs_that_ended_are_not_outstanding(self, backend: Backend) -> None:
        put(backend)
        bury(backend, take_one(backend))
        assert (backend.outstanding.running(5), backend.outstanding.queued(5)) == ([], [])
