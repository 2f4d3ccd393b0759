"""Tests of rows that a worker only meets through its own jobs, such as the keys of follow-up jobs."""

from __future__ import annotations

import pytest

from tests.app.worker_jobs_attacks import falter, lead_on, lead_on_atomic, report_digits
from tests.attacks.drains import Forgery, forge, trouble_with
from tests.attacks.hostile import JSON, NO_TEXTS, job_row

KEY = "held"
#: What a foreign row with the key has in a column; the rest of it is in order.
HELD = {
    "a number of 5,000 digits": {"payload": JSON["a number of 5,000 digits"]},
    "1,500 levels": {"payload": JSON["1,500 levels"]},
    "100,000 levels": {"payload": JSON["100,000 levels"]},
    "half of a surrogate pair": {"payload": JSON["half of a surrogate pair"]},
    "an id that is no UTF-8": {"id": NO_TEXTS["text with a FF"]},
    "a payload that is no UTF-8": {"payload": JSON["text of FFFE in JSON"]},
    "a type that is no UTF-8": {"type": NO_TEXTS["text of FFFE"]},
}


@pytest.mark.parametrize("state", ["queued", "completed"])
@pytest.mark.parametrize("value", HELD)
def test_a_key_that_such_a_row_holds_stops_no_worker(foreign, value, state):
    """A key of the first kind is held for good, one of the second by live jobs alone."""
    for column in ("idempotency_key", "unique_key"):
        row = job_row(state) | {"scheduled_at": "9000-01-01T00:00:00Z", column: KEY} | HELD[value]
        stored, _ = forge(foreign, [Forgery("job_queue", row, f"{column} of a row with {value}", state)])
        if not stored:
            continue
        leaders = [one.enqueue(key=KEY, once=column == "idempotency_key") for one in (lead_on, lead_on_atomic)]
        assert trouble_with(foreign, stored, turns=1) == ""
        ends = {row["id"]: row for row in foreign.jobs().values()}
        for leader in leaders:
            end = ends[leader.id]
            assert end["status"] == "completed" or (end["status"] == "dead_letter" and end["error"])
        foreign.clear()


@pytest.mark.parametrize("column", ["context", "progress", "payload", "result"])
def test_what_is_read_before_the_next_attempt_stops_no_worker(foreign, column):
    """The worker that drains waits for the job that failed, and looks at it again."""
    for value in (JSON["a number of 5,000 digits"], JSON["1,500 levels"], JSON["of another shape"]):
        waiting = falter.enqueue(text="no")
        foreign.run(f"UPDATE job_queue SET {column} = ? WHERE id = ?", value, waiting.id)
    assert trouble_with(foreign, {}, turns=1) == ""
    assert {row["status"] for row in foreign.jobs().values()} == {"completed", "dead_letter"}


def test_what_a_handler_tells_stops_no_worker(foreign):
    """Digits that Python would not read again: it is told, and the job goes on."""
    telling = report_digits.enqueue(digits=5_000)
    assert trouble_with(foreign, {}, turns=1) == ""
    (end,) = [row for row in foreign.jobs().values() if row["id"] == telling.id]
    assert end["status"] in ("completed", "dead_letter")
