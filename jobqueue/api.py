"""The public face: ``@job`` makes a handler, a handler enqueues; by name where the code is elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Protocol, Unpack, overload

from asgiref.sync import sync_to_async
from django.db import transaction

from jobqueue import backends
from jobqueue.admission import admit
from jobqueue.errors import InvalidOption, JobNotFound
from jobqueue.handler import E, Handler, M, ModelHandler, P, handler_of
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.declared import Exceptions, aliases_of, lease_of, options_of, policy_of
from jobqueue.handlers.payload import Upgrader
from jobqueue.handlers.registry import job_type, registry
from jobqueue.handlers.typed_options import JobDefaults, JobOptions
from jobqueue.policy.retry import Delay, Exponential, Seconds
from jobqueue.receipts import Receipt, T
from jobqueue.records import Draft, JobRecord


class MakesHandler(Protocol):
    """What ``@job(...)`` returns: it makes a handler of a function."""

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
    **defaults: Any,
) -> Any:
    """Make a handler of a function, bare or with options.

    ``name`` is the job type, the function's name by default. ``queue``, ``priority``, ``max_retries`` (attempts in
    all), ``timeout`` and ``delay`` are defaults of its jobs. ``retry`` says how long to wait after a failure;
    ``retry_on`` and ``discard_on`` say which exceptions are worth another attempt. ``version`` and
    ``upgraders`` let payloads evolve; ``aliases`` are former names that stored jobs may still have. ``lease`` is how
    long a worker that is not heard of keeps such a job. ``atomic`` runs the handler and its completion in one
    transaction of the queue's database: what it writes there happens exactly once. ``editable=False`` keeps operators
    from changing the payload of such a job.
    """
    if name is not None and not isinstance(name, str):
        return job()(name)
    options, policy = options_of(defaults), policy_of(retry, retry_on, discard_on)
    names, length = aliases_of(aliases), lease_of(lease)
    given: dict[str, Any] = {"version": version, "upgraders": upgraders, "atomic": atomic, "editable": editable}

    def make(function: Callable[..., Any]) -> Handler[..., Any, ...]:
        made = job_type(function, name, options=options, policy=policy, aliases=names, lease=length, **given)
        registry.add(made)
        return handler_of(made)

    return make


def find(target: str | Handler[..., Any, ...]) -> Handler[..., Any, ...]:
    """Return the handler with a name; raise UnknownJobType, with the nearest names, if there is none."""
    return handler_of(registry.get(target)) if isinstance(target, str) else target


def enqueue(name: str, payload: object = None, /, **options: Unpack[JobOptions]) -> Receipt:
    """Store a job by its type's name, for callers that do not import the handler; see Handler.enqueue()."""
    return admit([_draft_of(name, payload, options)])[0]


async def aenqueue(name: str, payload: object = None, /, **options: Unpack[JobOptions]) -> Receipt:
    """Do as ``enqueue()`` does, from async code."""
    return await sync_to_async(enqueue)(name, payload, **options)


def enqueue_many(drafts: Iterable[Draft]) -> list[Receipt]:
    """Store drafts of any types, all or none, in few statements."""
    listed = list(drafts)
    for one in listed:
        if not isinstance(one, Draft):
            raise InvalidOption("drafts", f"must be what handler.draft() makes, got {type(one).__name__}")
    return admit(listed)


async def aenqueue_many(drafts: Iterable[Draft]) -> list[Receipt]:
    """Do as ``enqueue_many()`` does, from async code."""
    return await sync_to_async(enqueue_many)(drafts)


def enqueue_on_commit(
    target: str | Handler[..., Any, ...],
    payload: object = None,
    /,
    *,
    using: str | None = None,
    **options: Unpack[JobOptions],
) -> None:
    """Validate a job now and store it once the transaction of another database (``using``) has committed.

    For a queue in a database of its own: nothing ties the two commits together, so a process that dies between them
    loses the job. Where the queue shares the application's database, ``enqueue`` has no such gap.
    """
    draft = _draft_of(target, payload, options)
    transaction.on_commit(lambda: admit([draft]), using=using)


def get(job_id: str) -> JobRecord:
    """Read one job with its history, also where it was relayed to; raise JobNotFound if there is none."""
    found = backends.look_up(job_id)
    if found is None:
        raise JobNotFound(job_id)
    return found


async def aget(job_id: str) -> JobRecord:
    """Do as ``get()`` does, from async code."""
    return await sync_to_async(get)(job_id)


def _draft_of(target: str | Handler[..., Any, ...], payload: object, options: JobOptions) -> Draft:
    handler = find(target)
    if options:
        handler = handler.using(**options)
    return handler.job_type.decide(handler.options, {} if payload is None else payload)
