"""The public face: ``@job`` makes a handler, a handler enqueues; by name where the code is elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from asgiref.sync import sync_to_async
from django.db import transaction
from pydantic import BaseModel

from jobqueue import backends
from jobqueue.admission import admit
from jobqueue.errors import InvalidOption, JobNotFound
from jobqueue.handlers.context import JobContext
from jobqueue.handlers.declared import Exceptions, aliases_of, lease_of, options_of, policy_of
from jobqueue.handlers.keys import payload_key
from jobqueue.handlers.options import OPTION_NAMES, Options
from jobqueue.handlers.payload import Upgrader
from jobqueue.handlers.reconciler import Compare, Reconciler, Subject
from jobqueue.handlers.registry import JobType, job_type, registry
from jobqueue.policy.retry import Delay, Exponential, Seconds
from jobqueue.receipts import Receipt
from jobqueue.records import Draft, JobRecord

P = ParamSpec("P")
E = ParamSpec("E")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
C = TypeVar("C", bound=Compare)


class Handler(Generic[P, R, E]):
    """A function that runs as a job. Called, it is the function it was; ``enqueue`` makes a job of the call."""

    def __init__(self, job_type: JobType, options: Options) -> None:
        functools.update_wrapper(self, job_type.function)
        self.job_type = job_type
        self.options = options

    @property
    def name(self) -> str:
        """The stable name under which jobs are stored."""
        return self.job_type.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.job_type.function(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"<Handler {self.name!r}: {self.job_type.where}>"

    def using(self, **options: Any) -> Handler[P, R, E]:
        """Return this handler with other options for what it enqueues: queue, priority, delay, scheduled_at,
        expires_at, max_retries, timeout, tenant, idempotency_key, unique_key. Raises InvalidOption.
        """
        if not options.keys() <= OPTION_NAMES:
            unknown = min(options.keys() - OPTION_NAMES)
            raise InvalidOption(unknown, f"is no option of enqueue; there are {', '.join(sorted(OPTION_NAMES))}")
        if options.get("scheduled_at") is not None:
            options.setdefault("delay", 0)  # the type's own delay is for jobs without a moment
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__, options=self.options.but(**options))
        return bound

    def draft(self, *args: E.args, **kwargs: E.kwargs) -> Draft:
        """Decide a job without storing it, for ``enqueue_many``. Raises as ``enqueue`` does."""
        return self._draft(self.job_type.signature.payload_of(args, kwargs))

    def enqueue(self, *args: E.args, **kwargs: E.kwargs) -> Receipt:
        """Store a job in the caller's transaction: it commits with the caller's data, or not at all.

        Raises pydantic's ValidationError or PayloadRefused for a bad payload and IdempotencyMismatch for another
        type's key; then nothing is stored. A duplicate is no error: the receipt names the job that is there.
        """
        return admit([self.draft(*args, **kwargs)])[0]

    async def aenqueue(self, *args: E.args, **kwargs: E.kwargs) -> Receipt:
        """See enqueue()."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def enqueue_many(self, payloads: Iterable[Any]) -> list[Receipt]:
        """Store a job for each payload (a model, or a dict of fields), all or none, in few statements.

        One key for many is refused; to give each its own, collect ``using(...).draft(...)`` and call
        ``jobqueue.enqueue_many``.
        """
        if self.options.idempotency_key is not None or self.options.unique_key is not None:
            raise InvalidOption("key", "cannot be the same for many jobs; draft each with a key of its own")
        return admit(self.job_type.decide_all(self.options, payloads))

    def key(self, *names: str, nonce: str = "", **values: Any) -> str:
        """Make an idempotency key of this type from chosen payload fields: ``resize.key("image_id", image_id=7)``.

        The fields are hashed, so the key tells nothing of them; add a nonce where guessing the key must not help.
        """
        missing = [name for name in names if name not in values]
        if missing:
            raise InvalidOption(missing[0], "is to be part of the key, but has no value")
        return payload_key(self.name, {name: values[name] for name in names or values}, nonce)

    def reconciler(self, *, subject: Subject | None = None) -> Callable[[C], C]:
        """Offer a comparison of completed jobs with the world, for ``manage.py jobqueue reconcile``.

        Decorates a function of a job's payload and its stored result, which returns ``None``, or a sentence that says
        what differs. Of the jobs with one ``subject``, of whatever type, only the last is compared.
        """

        def offer(compare: C) -> C:
            registry.offer(self.job_type, Reconciler(compare, subject))
            return compare

        return offer

    def _draft(self, payload: object) -> Draft:
        return self.job_type.decide(self.options, payload)


class ModelHandler(Handler[P, R, [M]], Generic[P, R, M]):
    """A handler whose payload is one model: given whole, or as the model's fields."""

    @overload
    def draft(self, payload: M, /) -> Draft: ...
    @overload
    def draft(self, **fields: Any) -> Draft: ...
    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """Decide a job without storing it, for ``enqueue_many``."""
        return super().draft(*args, **kwargs)

    @overload
    def enqueue(self, payload: M, /) -> Receipt: ...
    @overload
    def enqueue(self, **fields: Any) -> Receipt: ...
    def enqueue(self, *args: Any, **kwargs: Any) -> Receipt:
        """Store a job in the caller's transaction; see Handler.enqueue()."""
        return super().enqueue(*args, **kwargs)

    @overload
    async def aenqueue(self, payload: M, /) -> Receipt: ...
    @overload
    async def aenqueue(self, **fields: Any) -> Receipt: ...
    async def aenqueue(self, *args: Any, **kwargs: Any) -> Receipt:
        """See enqueue()."""
        return await super().aenqueue(*args, **kwargs)

    def using(self, **options: Any) -> ModelHandler[P, R, M]:
        """Return this handler with other options for what it enqueues; see Handler.using()."""
        return cast("ModelHandler[P, R, M]", super().using(**options))


class MakesHandler(Protocol):
    """What ``@job(...)`` returns: it makes a handler of a function."""

    @overload
    def __call__(self, function: Callable[[M], R], /) -> ModelHandler[[M], R, M]: ...
    @overload
    def __call__(self, function: Callable[[M, JobContext], R], /) -> ModelHandler[[M, JobContext], R, M]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, E], R], /
    ) -> Handler[Concatenate[JobContext, E], R, E]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Handler[P, R, P]: ...


@overload
def job(function: Callable[[M], R], /) -> ModelHandler[[M], R, M]: ...
@overload
def job(function: Callable[[M, JobContext], R], /) -> ModelHandler[[M, JobContext], R, M]: ...
@overload
def job(function: Callable[Concatenate[JobContext, E], R], /) -> Handler[Concatenate[JobContext, E], R, E]: ...
@overload
def job(function: Callable[P, R], /) -> Handler[P, R, P]: ...
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
    **defaults: Any,
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
    if callable(name):
        return job()(name)
    options, policy = options_of(defaults), policy_of(retry, retry_on, discard_on)
    names, length = aliases_of(aliases), lease_of(lease)
    given: dict[str, Any] = {"version": version, "upgraders": upgraders, "atomic": atomic, "editable": editable}

    def make(function: Callable[..., Any]) -> Handler[..., Any, ...]:
        made = job_type(function, name, options=options, policy=policy, aliases=names, lease=length, **given)
        registry.add(made)
        return handler_of(made)

    return make


def handler_of(kind: JobType) -> Handler[..., Any, ...]:
    """Return the handler of a job type."""
    whole = kind.signature.payload_parameter is not None and isinstance(kind.signature.form, type)
    is_model = whole and issubclass(kind.signature.form, BaseModel)
    return (ModelHandler if is_model else Handler)(kind, kind.options)


def find(target: str | Handler[..., Any, ...]) -> Handler[..., Any, ...]:
    """Return the handler with a name; raise UnknownJobType, with the nearest names, if there is none."""
    return handler_of(registry.get(target)) if isinstance(target, str) else target


def enqueue(name: str, payload: object = None, /, **options: Any) -> Receipt:
    """Store a job by its type's name, for callers that do not import the handler; see Handler.enqueue()."""
    return admit([_draft_of(name, payload, options)])[0]


async def aenqueue(name: str, payload: object = None, /, **options: Any) -> Receipt:
    """See enqueue()."""
    return await sync_to_async(enqueue)(name, payload, **options)


def enqueue_many(drafts: Iterable[Draft]) -> list[Receipt]:
    """Store drafts of any types, all or none, in few statements."""
    listed = list(drafts)
    for one in listed:
        if not isinstance(one, Draft):
            raise InvalidOption("drafts", f"must be what handler.draft() makes, got {type(one).__name__}")
    return admit(listed)


def enqueue_on_commit(
    target: str | Handler[..., Any, ...], payload: object = None, /, *, using: str | None = None, **options: Any
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


def _draft_of(target: str | Handler[..., Any, ...], payload: object, options: dict[str, Any]) -> Draft:
    handler = find(target)
    return (handler.using(**options) if options else handler)._draft({} if payload is None else payload)
