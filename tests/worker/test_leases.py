"""Tests of leases that can't be renewed because of a lock: tried sometimes, and given up in time."""

from __future__ import annotations

import pytest

from jobqueue.errors import StopReason
from jobqueue.records import Extension
from jobqueue.testing.clock import VirtualClock
from jobqueue.worker.database_link import DatabaseLink
from jobqueue.worker.supervisor import leases as leases_module
from jobqueue.worker.supervisor.claims import Claims, HeldClaim, margin
from jobqueue.worker.supervisor.leases import Leases
from tests.worker.test_units import claim_of


class Context:
    """What leases need of a supervisor, with a backend that finds each row locked by somebody else."""

    def __init__(self):
        self.claims = Claims()
        self.database = DatabaseLink("default", self.claims.__len__, 60.0, lambda _error: False)
        self.backend = self.limits = self
        self.extended = []
        self.stopped = []

    def extend(self, claims, _lease):
        self.extended.append(leases_module.SYSTEM.monotonic())
        return Extension(skipped=tuple(claims))

    def review(self, _claims):
        return Extension()

    def ask(self, held, reason, *, grace):
        self.stopped.append((held, reason, grace))


@pytest.mark.parametrize(("lease", "tries"), [(60.0, 31), (5.0, 8), (1.0, 8)])
def test_a_lease_whose_row_is_locked_is_tried_now_and_then_until_it_is_given_up(monkeypatch, lease, tries):
    clock, context = VirtualClock(), Context()
    monkeypatch.setattr(leases_module, "SYSTEM", clock)
    leases, began = Leases(context, context.limits, None), clock.monotonic()
    held = HeldClaim(claim_of(), lease, 3600.0, began)
    context.claims.begin([held])
    while not context.stopped:  # turns come as often as other jobs want them
        clock.advance(lease / 1000)
        leases.act()
    assert context.stopped == [(held, StopReason.LEASE_LOST, margin(lease) / 2)]
    assert abs(len(context.extended) - tries) <= 2
    assert context.extended[0] - began == pytest.approx(lease / 3, rel=0.01)
    last_moment = began + lease - margin(lease)
    assert clock.monotonic() < last_moment - margin(lease) / 2
