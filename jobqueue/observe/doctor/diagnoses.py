"""All diagnoses: those of the deployment and the databases, and what the evaluation of health finds about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.utils import translation

from jobqueue.observe.doctor import deployment, postgres, sqlite
from jobqueue.observe.doctor.diagnosis import Diagnosis
from jobqueue.observe.doctor.examination import Examination
from jobqueue.observe.health import Cause, advice, findings, sentence
from jobqueue.observe.wording import Wording

#: A diagnosis is found in an examination. To add one, write such a function and name it in the list of its file.
Find = Callable[[Examination], Iterator[Diagnosis]]
_FINDS: tuple[Find, ...] = (*deployment.DIAGNOSES, *sqlite.DIAGNOSES, *postgres.DIAGNOSES)

_SNAPSHOTS = "docs/explanation/old-snapshots.md"
#: The causes that concern the setup, rather than the jobs of the moment, and their pages.
_OF_SETUP = {
    Cause.SNAPSHOT_HELD: f"{_SNAPSHOTS}#who-holds-it",
    Cause.DEAD_ROWS_KEPT: "docs/explanation/sizing.md#vacuum",
    Cause.LOG_LARGE: f"{_SNAPSHOTS}#sqlite",
    Cause.CLOCKS_APART: "docs/explanation/leases-and-fence.md",
    Cause.DUTY_FAILING: "docs/reference/runworker.md#duties",
}


def diagnoses(seen: Examination, wording: Wording) -> list[Diagnosis]:
    """Return what is wrong, the worst first."""
    found = [one for find in _FINDS for one in find(seen)]
    return sorted([*found, *_of_health(seen, wording)], key=lambda one: -one.level)


def _of_health(seen: Examination, wording: Wording) -> Iterator[Diagnosis]:
    """Pass on the findings of the queue's health that concern the setup."""
    health = seen.health
    for one in findings(health) if health else ():
        if health and one.cause in _OF_SETUP:
            with translation.override(None):
                text, remedy = sentence(one, wording, health.now), advice(one)
            yield Diagnosis(one.level, one.cause.value, text, remedy, _OF_SETUP[one.cause])
