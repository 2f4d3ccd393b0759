"""Handlers: functions with methods that enqueue jobs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

from pydantic import BaseModel

from jobqueue.api.admission import admit, without_blocking
from jobqueue.api.receipts import Receipt, T
from jobqueue.errors import InvalidOption
from jobqueue.handlers.job_options import no_option_of_a_job
from jobqueue.handlers.keys import payload_key, typed
from jobqueue.handlers.options import OPTION_NAMES, Options
from jobqueue.handlers.reconciler import Compare, Reconciler, Subject
from jobqueue.handlers.registry import JobType, registry
from jobqueue.handlers.typed_options import JobOptions
from jobqueue.records import Draft

P = ParamSpec("P")
E = ParamSpec("E")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
C = TypeVar("C", bound=Compare)


class Handler(Generic[P, R, E, T]):
    """A function that runs as a job. Calling it calls the function; ``enqueue`` stores the call as a job."""

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

    def using(self, **options: Unpack[JobOptions]) -> Handler[P, R, E, T]:
        """Return this handler with other options for the jobs it enqueues. Raises InvalidOption.

        The options are queue, priority, delay, scheduled_at, expires_at, max_retries, timeout, tenant, workspace,
        idempotency_key and unique_key, and for calls that repeat with the same unique_key: debounce with max_wait and
        replace_payload, or throttle.
        """
        if not options.keys() <= OPTION_NAMES:
            raise no_option_of_a_job(min(options.keys() - OPTION_NAMES))
        if options.get("scheduled_at") is not None or options.get("debounce") is not None:
            options.setdefault("delay", 0)  # the type's default delay is for jobs without a time of their own
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__, options=self.options.but(**options))
        return bound

    def draft(self, *args: E.args, **kwargs: E.kwargs) -> Draft:
        """Return a draft of a job without storing it, for ``enqueue_many``. Raises the same errors as ``enqueue``."""
        return self.job_type.decide(self.options, self.job_type.signature.payload_of(args, kwargs))

    def enqueue(self, *args: E.args, **kwargs: E.kwargs) -> Receipt[T]:
        """Store a job in the caller's transaction: it commits with the caller's data, or not at all.

        Raises pydantic's ValidationError or PayloadRefused for an invalid payload, and IdempotencyMismatch if the key
        belongs to another type; then nothing is stored. A duplicate isn't an error: the receipt names the existing job.
        """
        return admit([self.draft(*args, **kwargs)])[0]

    async def aenqueue(self, *args: E.args, **kwargs: E.kwargs) -> Receipt[T]:
        """Async version of ``enqueue()``."""
        return await without_blocking(lambda: self.enqueue(*args, **kwargs))

    def enqueue_many(self, payloads: Iterable[Any]) -> list[Receipt[T]]:
        """Store a job for each payload, a model or a dict of fields, in a few statements: all of them or none.

        Raises InvalidOption if the handler has a key, which can't be the same for many jobs. To give each a key of its
        own, collect ``using(...).draft(...)`` and call ``jobqueue.enqueue_many``.
        """
        if self.options.idempotency_key is not None or self.options.unique_key is not None:
            raise InvalidOption("key", "cannot be the same for many jobs: draft each with a key of its own")
        return admit(self.job_type.decide_all(self.options, payloads))

    async def aenqueue_many(self, payloads: Iterable[Any]) -> list[Receipt[T]]:
        """Async version of ``enqueue_many()``."""
        listed = list(payloads)
        return await without_blocking(lambda: self.enqueue_many(listed))

    def key(self, *names: str, nonce: str = "", **values: Any) -> str:
        """Return an idempotency key of this type from chosen payload fields: ``resize.key("image_id", image_id=7)``.

        Values are validated like the payload's fields, so that equal payloads have equal keys. The fields are hashed,
        so the key doesn't reveal them; add a nonce if the values could be guessed.
        """
        missing = [name for name in names if name not in values]
        if missing:
            raise InvalidOption(missing[0], "is part of the key, but has no value")
        chosen = {name: values[name] for name in names or values}
        return payload_key(self.name, typed(self.job_type.signature.form, chosen), nonce)

    def reconciler(self, *, subject: Subject | None = None) -> Callable[[C], C]:
        """Register a comparison of completed jobs with the world, for ``manage.py jobqueue reconcile``.

        Decorates a function of a job's payload and its stored result. It returns ``None``, or a sentence that says what
        differs. Of all jobs with the same ``subject``, of any type, only the last is compared.
        """

        def offer(compare: C) -> C:
            registry.offer(self.job_type, Reconciler(compare, subject))
            return compare

        return offer


class ModelHandler(Handler[P, R, [M], T], Generic[P, R, M, T]):
    """A handler whose payload is one model, given whole or as the model's fields."""

    @overload
    def draft(self, payload: M, /) -> Draft: ...
    @overload
    def draft(self, **fields: Any) -> Draft: ...
    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """Return a draft of a job without storing it, for ``enqueue_many``."""
        return super().draft(*args, **kwargs)

    @overload
    def enqueue(self, payload: M, /) -> Receipt[T]: ...
    @overload
    def enqueue(self, **fields: Any) -> Receipt[T]: ...
    def enqueue(self, *args: Any, **kwargs: Any) -> Receipt[T]:
        """Store a job in the caller's transaction. See Handler.enqueue()."""
        return super().enqueue(*args, **kwargs)

    @overload
    async def aenqueue(self, payload: M, /) -> Receipt[T]: ...
    @overload
    async def aenqueue(self, **fields: Any) -> Receipt[T]: ...
    async def aenqueue(self, *args: Any, **kwargs: Any) -> Receipt[T]:
        """Async version of ``enqueue()``."""
        return await super().aenqueue(*args, **kwargs)

    def using(self, **options: Unpack[JobOptions]) -> ModelHandler[P, R, M, T]:
        """Return this handler with other options for the jobs it enqueues. See Handler.using()."""
        return cast("ModelHandler[P, R, M, T]", super().using(**options))


def handler_of(kind: JobType) -> Handler[..., Any, ...]:
    """Return the handler of a job type."""
    whole = kind.signature.payload_parameter is not None and isinstance(kind.signature.form, type)
    is_model = whole and issubclass(kind.signature.form, BaseModel)
    return (ModelHandler if is_model else Handler)(kind, kind.options)
