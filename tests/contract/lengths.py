"""The length of the state machines' runs: short in CI, or JOBQUEUE_MACHINE_STEPS steps."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

STEPS_OF_A_RUN = 40
ASKED = os.environ.get("JOBQUEUE_MACHINE_STEPS", "")


def length(runs: int) -> settings:
    """So many runs of up to 40 steps each, unless more steps are asked for."""
    return settings(
        max_examples=int(ASKED) // STEPS_OF_A_RUN if ASKED else runs,
        stateful_step_count=STEPS_OF_A_RUN,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
