"""The checks of the rules of retention: they name types and storages that exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.core.files.storage import storages

from jobqueue import conf, retention
from jobqueue.archive.place import alias_of
from jobqueue.handlers.registry import registry
from jobqueue.policy.nearest import did_you_mean


@register(conf.CHECKS)
def check_retention(**_: Any) -> list[CheckMessage]:
    """Check the types and storages that rules name. Other mistakes in a rule are errors of the setting."""
    return [*_unknown_types(), *_unknown_storages()] if conf.is_sound() else []


def _unknown_types() -> Iterator[CheckMessage]:
    for rule in retention.rules():
        if rule.type is not None and rule.type not in registry.names:
            yield Caution(
                f"JOBQUEUE['RETENTION'] has a rule for jobs of the type {rule.type!r}, which has no handler.",
                hint=f"{did_you_mean(rule.type, registry.names)} If such jobs are left from an older release, silence "
                "jobqueue.W019.",
                id="jobqueue.W019",
            )


def _unknown_storages() -> Iterator[CheckMessage]:
    for alias in sorted({alias for rule in retention.rules() if rule.archive and (alias := alias_of(rule.archive))}):
        if alias not in storages.backends:
            yield Error(
                f"JOBQUEUE['RETENTION'] archives in the storage {alias!r}, which STORAGES does not have.",
                hint=did_you_mean(alias, storages.backends),
                id="jobqueue.E015",
            )
