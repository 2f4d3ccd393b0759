"""The decorator ``@job``, which makes a function a handler and registers its job type."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, Protocol, Unpack, overload

from jobqueue.api.handler import E, Handler, M, ModelHandler, P, handler_of
from jobqueue.api.receipts import T
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.job_options import Exceptions, aliases_of, lease_of, options_of, policy_of
from jobqueue.handlers.payload import Upgrader
from jobqueue.handlers.registry import job_type, registry
from jobqueue.handlers.typed_options import JobDefaults
from jobqueue.policy.limits.declared_limits import DeclaredLimit
from jobqueue.policy.retry import Delay, Exponential, Seconds
from jobqueue.policy.schedules.rule import Rule
from jobqueue.schedules.declared import declare_rules


class MakesHandler(Protocol):
    """The return value of ``@job(...)``: a decorator that makes a function a handler."""

    @overload
    def __call__(
        self, function: Callable[[M], Coroutine[Any, Any, T]], /
    ) -> ModelHandler[[M], Coroutine[Any, Any, T], M, T]: ...
    @overload
    def __call__(self, function: Callable[[M], T], /) -> ModelHandler[[M], T, M, T]: ...
    @overload
    def __call__(
        self, function: Callable[[M, JobContext], Coroutine[Any, Any, T]], /
    ) -> ModelHandler[[M, JobContext], Coroutine[Any, Any, T], M, T]: ...
    @overload
    def __call__(self, function: Callable[[M, JobContext], T], /) -> ModelHandler[[M, JobContext], T, M, T]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, E], Coroutine[Any, Any, T]], /
    ) -> Handler[Concatenate[JobContext, E], Coroutine[Any, Any, T], E, T]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, E], T], /
    ) -> Handler[Concatenate[JobContext, E], T, E, T]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Handler[P, Coroutine[Any, Any, T], P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Handler[P, T, P, T]: ...


@overload
def job(function: Callable[[M], Coroutine[Any, Any, T]], /) -> ModelHandler[[M], Coroutine[Any, Any, T], M, T]: ...
@overload
def job(function: Callable[[M], T], /) -> ModelHandler[[M], T, M, T]: ...
@overload
def job(
    function: Callable[[M, JobContext], Coroutine[Any, Any, T]], /
) -> ModelHandler[[M, JobContext], Coroutine[Any, Any, T], M, T]: ...
@overload
def job(function: Callable[[M, JobContext], T], /) -> ModelHandler[[M, JobContext], T, M, T]: ...
@overload
def job(
    function: Callable[Concatenate[JobContext, E], Coroutine[Any, Any, T]], /
) -> Handler[Concatenate[JobContext, E], Coroutine[Any, Any, T], E, T]: ...
@overload
def job(function: Callable[Concatenate[JobContext, E], T], /) -> Handler[Concatenate[JobContext, E], T, E, T]: ...
@overload
def job(function: Callable[P, Coroutine[Any, Any, T]], /) -> Handler[P, Coroutine[Any, Any, T], P, T]: ...
@overload
def job(function: Callable[P, T], /) -> Handler[P, T, P, T]: ...
@overload
def job(
    name: str | None = None,
    /,
    *,
    retry: Delay = ...,
    retry_on: Exceptions | type[BaseException] = ...,
    discard_on: Exceptions | type[BaseException] = ...,
    version: int = 1,
    upgraders: Mapping[int, Upgrader] | None = None,
    aliases: Sequence[str] = (),
    lease: Seconds | None = None,
    atomic: bool = False,
    editable: bool = True,
    critical: bool = False,
    limits: Sequence[DeclaredLimit] = (),
    schedule: Rule | Sequence[Rule] = (),
    **defaults: Unpack[JobDefaults],
) -> MakesHandler: ...
def job(
    name: Any = None,
    /,
    *,
    retry: Delay = Exponential(),  # noqa: B008 - frozen
    retry_on: Exceptions | type[BaseException] = (BaseException,),
    discard_on: Exceptions | type[BaseException] = (),
    version: int = 1,
    upgraders: Mapping[int, Upgrader] | None = None,
    aliases: Sequence[str] = (),
    lease: Seconds | None = None,
    atomic: bool = False,
    editable: bool = True,
    critical: bool = False,
    limits: Sequence[DeclaredLimit] = (),
    schedule: Rule | Sequence[Rule] = (),
    **defaults: Any,
) -> Any:
    """Make a function a handler of jobs. Can be used with or without options.

    ``name`` is the job type; it defaults to the function's name. ``queue``, ``priority``, ``max_retries`` (the total
    number of attempts), ``timeout`` and ``delay`` are defaults for its jobs. ``retry`` is the wait after a failure;
    ``retry_on`` and ``discard_on`` say which exceptions are retried. ``version`` and ``upgraders`` let payloads
    evolve; ``aliases`` are former names that stored jobs may still have. ``lease`` is how long a job stays claimed
    after its worker stops renewing the lease. ``atomic`` runs the handler and its completion in one transaction of
    the queue's database, so that its writes there happen exactly once. ``editable=False`` keeps operators from
    changing the payloads of such jobs. ``critical`` makes each dead letter of the type an alert. ``limits`` are
    ``Concurrency`` and ``Rate``, which hold for all workers together. ``schedule`` is a rule, or several, for jobs with
    an empty payload; see ``schedule()``, which has more options.
    """
    if name is not None and not isinstance(name, str):
        return job()(name)
    options, policy = options_of(defaults), policy_of(retry, retry_on, discard_on)
    names, length = aliases_of(aliases), lease_of(lease)
    given: dict[str, Any] = {"version": version, "upgraders": upgraders, "atomic": atomic, "editable": editable}
    given |= {"limits": limits, "critical": critical}

    def make(function: Callable[..., Any]) -> Handler[..., Any, ...]:
        made = job_type(function, name, options=options, policy=policy, aliases=names, lease=length, **given)
        registry.add(made)
        declare_rules(made, schedule)
        return handler_of(made)

    return make
