"""The registry of job types. A row names a job type, never an import path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any

from pydantic import PydanticUserError

from jobqueue import conf, queues
from jobqueue.errors import DuplicateJobType, InvalidHandler, UnknownJobType, duration
from jobqueue.handlers import ambient, origin
from jobqueue.handlers.context import Attending, JobContext
from jobqueue.handlers.lanes import with_lane
from jobqueue.handlers.limits import check_keys, with_keys
from jobqueue.handlers.options import Options, in_utc
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.payload import PayloadType, Upgrader
from jobqueue.handlers.reconciler import Reconciler
from jobqueue.handlers.result import ResultType
from jobqueue.handlers.signature import Signature
from jobqueue.ids import new_id
from jobqueue.policy.limits.declared_limits import DeclaredLimit, checked
from jobqueue.policy.retry import RetryPolicy, Seconds
from jobqueue.records import Assignment, Claim, Draft


@dataclass(frozen=True, kw_only=True)
class JobType:
    """A job type: its function, its payload, its defaults, and the treatment of its failures."""

    name: str
    function: Callable[..., Any]
    where: str
    signature: Signature
    payload: PayloadType[Any]
    result: ResultType = field(default_factory=ResultType)
    options: Options = field(default_factory=Options)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    aliases: tuple[str, ...] = ()
    lease: timedelta | None = None
    atomic: bool = False
    editable: bool = True
    critical: bool = False
    limits: tuple[DeclaredLimit, ...] = ()

    @cached_property
    def is_async(self) -> bool:
        """Return whether its function is a coroutine function."""
        return iscoroutinefunction(self.function)

    @property
    def timeout(self) -> timedelta:
        """Return the time limit of attempts whose job doesn't set one."""
        given = self.options.timeout
        return duration(conf.get("TIMEOUT") if given is None else given, "timeout")

    def decide(self, options: Options, payload: object) -> Draft:
        """Return a draft with a validated payload and resolved options. Raises the same errors as ``enqueue``."""
        return self.decide_all(options, [payload])[0]

    def decide_all(self, options: Options, payloads: Iterable[object]) -> list[Draft]:
        """Return a draft for each payload. Shared values are computed once, because they take as long as a payload."""
        version = self.payload.version
        delay = duration(options.delay, "delay")
        scheduled_at, expires_at = in_utc(options.scheduled_at), in_utc(options.expires_at)
        timeout = None if options.timeout is None else duration(options.timeout, "timeout")
        debounce = max_wait = throttle = None
        if options.debounce is not None or options.throttle is not None or options.max_wait is not None:
            debounce, max_wait, throttle = map(_length, (options.debounce, options.max_wait, options.throttle))
        context = ambient.capture(max_wait)
        drafts = [
            Draft(
                id=new_id(),
                type=self.name,
                payload=self.payload.dump(payload),
                payload_version=version,
                queue=options.queue,
                priority=options.priority,
                max_retries=options.max_retries,
                delay=delay,
                scheduled_at=scheduled_at,
                expires_at=expires_at,
                timeout=timeout,
                idempotency_key=options.idempotency_key,
                unique_key=options.unique_key,
                tenant=options.tenant,
                workspace=options.workspace,
                context=context,
                debounce=debounce,
                max_wait=max_wait,
                replace_payload=options.replace_payload,
                parallel=bool(options.parallel),
                throttle=throttle,
            )
            for payload in payloads
        ]
        of_queue = queues.options_of(options.queue)
        if self.limits or of_queue.has_keys:
            drafts = [with_keys(self, draft) for draft in drafts]
        if of_queue.ordered or options.parallel is not None:
            drafts = [with_lane(self, draft, options.parallel) for draft in drafts]
        return drafts

    def draft(self, *args: Any, **fields: Any) -> Draft:
        """Return a draft with the type's own options."""
        return self.decide(self.options, self.signature.payload_of(args, fields))

    def call(self, claim: Claim | Assignment, attendant: Attending | None = None) -> Any:
        """Load the claim's payload and call the function with it. A coroutine function returns a coroutine."""
        payload = self.payload.load(claim.payload, claim.payload_version)
        if self.signature.context_parameter is None:  # making a context costs more than many handlers do
            return self.function(**self.signature.arguments(payload, None))
        context = JobContext(
            job_id=claim.id,
            job_type=claim.type,
            queue=claim.queue,
            attempt=claim.attempt,
            max_retries=claim.max_retries,
            fence=claim.fence,
            tenant=claim.tenant,
            workspace=claim.workspace,
            parent_id=claim.parent_id,
            **origin.found(),
            attendant=attendant,
        )
        return self.function(**self.signature.arguments(payload, context))


def _length(seconds: Seconds | None) -> timedelta | None:
    return None if seconds is None else duration(seconds, "duration")


def describe(function: Callable[..., Any]) -> str:
    """Return where a function is defined: module, name and line."""
    code = getattr(function, "__code__", None)
    line = f", line {code.co_firstlineno}" if code else ""
    return f"{function.__module__}.{function.__qualname__}{line}"


def job_type(
    function: Callable[..., Any],
    name: str | None,
    *,
    options: Options,
    policy: RetryPolicy,
    aliases: tuple[str, ...],
    version: int,
    upgraders: Mapping[int, Upgrader] | None,
    lease: timedelta | None = None,
    atomic: bool = False,
    editable: bool = True,
    critical: bool = False,
    limits: Sequence[DeclaredLimit] = (),
) -> JobType:
    """Return a job type for a function. Raise InvalidHandler if it can't be one."""
    if not hasattr(function, "__qualname__"):
        raise InvalidHandler(f"@job takes a function defined in a module, not {function!r}.")
    where = describe(function)
    _check_names(name or function.__name__, *aliases)
    _check_versions(where, version, upgraders or {})
    _check_flags(function, where, atomic, critical)
    signature = Signature.of(function, where)
    try:
        payload = PayloadType(signature.form, version, upgraders)
    except PydanticUserError as error:
        raise InvalidHandler(f"The payload of {where} has a type that pydantic does not support: {error}") from error
    check_keys(held_to := checked("limits", limits), signature.form, where)
    return JobType(
        name=name or function.__name__,
        function=function,
        where=where,
        signature=signature,
        payload=payload,
        result=ResultType(signature.returns),
        options=options,
        policy=policy,
        aliases=aliases,
        lease=lease,
        atomic=atomic,
        editable=editable,
        critical=critical,
        limits=held_to,
    )


def _check_names(*names: str) -> None:
    for one in names:
        check_name("the job type's name", one)


def _check_versions(where: str, version: int, upgraders: Mapping[int, Upgrader]) -> None:
    if type(version) is not int or version < 1:
        raise InvalidHandler(
            f"{where} has the payload version {version!r}; versions are whole numbers, starting from 1."
        )
    steps = set(upgraders)
    if not steps <= set(range(1, version)):
        raise InvalidHandler(f"{where} has upgraders from the versions {sorted(steps)}, but its version is {version}.")
    if not all(map(callable, upgraders.values())):
        raise InvalidHandler(f"{where} has upgraders that are not functions.")


def _check_flags(function: Callable[..., Any], where: str, atomic: bool, critical: bool) -> None:
    if type(critical) is not bool:
        raise InvalidHandler(f"{where} has critical={critical!r}; it must be True or False.")
    if atomic and iscoroutinefunction(function):
        raise InvalidHandler(f"{where} is a coroutine function and cannot be atomic: Django has no async transactions.")


class Registry:
    """The job types of this process, by name and alias."""

    def __init__(self) -> None:
        self._types: dict[str, JobType] = {}
        self._reconcilers: dict[str, Reconciler] = {}

    def __iter__(self) -> Iterator[JobType]:
        return iter({id(one): one for one in self._types.values()}.values())

    @property
    def names(self) -> frozenset[str]:
        """Return all names in stored rows that this process can run."""
        return frozenset(self._types)

    def add(self, added: JobType) -> None:
        """Register a job type. Two functions with one name raise an error that names both."""
        for name in (added.name, *added.aliases):
            known = self._types.get(name)
            if known and known.where != added.where:  # the same place: the module was imported again
                raise DuplicateJobType(name, known.where, added.where)
        for name in (added.name, *added.aliases):
            self._types[name] = added

    def offer(self, kind: JobType, reconciler: Reconciler) -> None:
        """Register the reconciler of a type, in place of an earlier one."""
        for name in (kind.name, *kind.aliases):
            self._reconcilers[name] = reconciler

    @property
    def reconcilers(self) -> Mapping[str, Reconciler]:
        """Return the reconcilers by job type, aliases included."""
        return MappingProxyType(self._reconcilers)

    def is_async(self, name: str) -> bool:
        """Return whether a type is known and its handler is a coroutine function."""
        return name in self._types and self._types[name].is_async

    def is_atomic(self, name: str) -> bool:
        """Return whether a type is known and its handler is atomic."""
        return name in self._types and self._types[name].atomic

    def get(self, name: str) -> JobType:
        """Return a job type. Raise UnknownJobType, with the nearest names, if there is none."""
        if name not in self._types:
            raise UnknownJobType(name, self._types)
        return self._types[name]


registry = Registry()
