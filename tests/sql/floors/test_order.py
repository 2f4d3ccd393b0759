"""Tests of the order where claims begin at floors: the same as the plain queue's."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.lengths import ASKED, length
from tests.contract.test_plain_machine import PlainMachine
from tests.sql.floors.harness import look_through_all, raise_at_once

pytestmark = pytest.mark.postgres


@pytest.mark.timeout(0 if ASKED else 600)
@pytest.mark.parametrize("sections", [1, 5])
def test_claims_sweeps_and_looks_behind_floors_do_what_the_plain_queue_says(databases, monkeypatch, sections):
    raise_at_once(monkeypatch, sections)
    look_through_all(monkeypatch)
    machine = type("PlainMachineWithFloors", (PlainMachine,), {"kind": "postgres"})
    run_state_machine_as_test(machine, settings=length(18))
