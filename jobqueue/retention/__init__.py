"""Retention: deletes jobs that ended long ago, in small batches that keep nobody waiting."""

from __future__ import annotations

from jobqueue import conf
from jobqueue.policy.retention import Rule
from jobqueue.policy.retention_rules import read


def rules() -> tuple[Rule, ...]:
    """Return the rules of the settings that delete anything, or keep what another rule would delete."""
    return read(conf.get("RETENTION"))
