"""Crashed executors. A job that ran alone uses up an attempt. Of several jobs none does, and each runs alone next."""

from __future__ import annotations

import logging
import signal
from datetime import timedelta
from random import SystemRandom

from jobqueue.clock import SYSTEM
from jobqueue.errors import StopReason
from jobqueue.handlers.registry import registry
from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.retry import RetryPolicy, decide_cut_short
from jobqueue.policy.settling import released, settled
from jobqueue.records import Alone, AttemptCount, Decision, Ending, Failure, Settlement, Stopped
from jobqueue.worker.supervisor.claims import HeldClaim
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.executor_link import ExecutorLink

logger = logging.getLogger("jobqueue")

_dice = SystemRandom()


def settle_crashed(context: WorkerContext, link: ExecutorLink, status: int, *, silenced: bool = False) -> None:
    """Settle the jobs of a dead executor, and forget it. Read the outcomes that it has sent before calling this.

    ``silenced`` means that the zygote killed the executor because the supervisor was silent.
    """
    several = list(link.held.values())
    how = f"was killed because it sent an invalid message ({link.broken})" if link.broken else _how(status)
    if several and not link.doomed:
        logger.error("Executor %s %s with %s", link.pid, how, _jobs(several))
    for held in several:
        settlement = _settlement(held, link, how, in_company=len(several) > 1, silenced=silenced)
        if settlement is None:
            context.claims.drop(held.key)
            context.events.tell([context.events.lost(held)])
        else:
            context.claims.finish(held, settlement)
    link.held.clear()
    context.executors.remove(link)


def _settlement(
    held: HeldClaim, link: ExecutorLink, how: str, *, in_company: bool, silenced: bool
) -> Settlement | None:
    if held.reason is StopReason.LEASE_LOST:
        return None
    if held.reason is StopReason.CANCELLED:
        return settled(held.claim, Stopped("cancelled"), _failure(held, Ending.CANCELLED, "it was cancelled"))
    if held.reason is StopReason.TIME_LIMIT:
        words = f"it ran longer than its limit of {held.limit:g} s and did not stop when asked"
        return settled(held.claim, _decision(held, "timed out"), _failure(held, Ending.TIMED_OUT, words))
    if link.doomed:
        return released(held.claim, "its executor was killed because of another job, or because its worker stopped")
    if silenced:
        return released(held.claim, "its executor was killed because the supervisor was silent for too long")
    failure = _failure(held, Ending.CRASHED, f"its process {how} while it ran")
    if in_company and not link.alone:
        return settled(held.claim, Alone(), failure)
    return settled(held.claim, _decision(held, "crashed"), failure)


def _decision(held: HeldClaim, reason: str) -> Decision:
    known = held.claim.type in registry.names
    policy = registry.get(held.claim.type).policy if known else RetryPolicy()
    return decide_cut_short(policy, AttemptCount(held.claim.attempt, held.claim.max_retries), reason, rng=_dice)


def _failure(held: HeldClaim, ending: Ending, message: str) -> Failure:
    ran = timedelta(seconds=SYSTEM.monotonic() - held.since)
    return with_fingerprint(held.claim.type, Failure.of(ending, message=message, duration=ran))


def _how(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _jobs(several: list[HeldClaim]) -> str:
    named = ", ".join(f"{held.claim.type} {held.claim.id}" for held in several[:5])
    return named if len(several) <= 5 else f"{named} and {len(several) - 5} more jobs"
