"""The check of the rules of retention: they name types that exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, register
from django.core.checks import Warning as Caution

from jobqueue import conf, retention
from jobqueue.handlers.registry import registry
from jobqueue.policy.nearest import did_you_mean


@register(conf.CHECKS)
def check_retention(**_: Any) -> list[CheckMessage]:
    """Check the types that rules name. Other mistakes in a rule are errors of the setting."""
    return [*_unknown_types()] if conf.is_sound() else []


def _unknown_types() -> Iterator[CheckMessage]:
    for rule in retention.rules():
        if rule.type is not None and rule.type not in registry.names:
            yield Caution(
                f"JOBQUEUE['RETENTION'] has a rule for jobs of the type {rule.type!r}, which has no handler.",
                hint=f"{did_you_mean(rule.type, registry.names)} If such jobs are left from an older release, silence "
                "jobqueue.W019.",
                id="jobqueue.W019",
            )
