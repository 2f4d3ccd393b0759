"""The event loop of an executor, in a thread of its own, for coroutine handlers."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from contextvars import Context, copy_context
from functools import partial

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from jobqueue.worker.executor import connections, forks
from jobqueue.worker.executor.attempt import Outcome, Running, perform_async, settle_failure

logger = logging.getLogger("jobqueue")

Done = Callable[[Running, Outcome], None]


class Coroutines:
    """Runs coroutine handlers and reports their outcomes. ``flush`` is called when the loop has a moment.

    Each coroutine has a thread-sensitive context of its own: its ``sync_to_async`` calls and async ORM methods run in
    one thread with one connection, which no other coroutine shares at that time.
    """

    def __init__(
        self, done: Done, flush: Callable[[], None], its_turn: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._done = done
        self._flush = flush
        self._its_turn = its_turn
        self._free: list[Context] = []
        self._tasks: dict[tuple[str, int], asyncio.Task[Outcome]] = {}
        self._flushing = False
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._default = ThreadPoolExecutor(thread_name_prefix="asyncio")  # the size of the loop's default
        self._loop.set_default_executor(self._default)
        self._thread = threading.Thread(target=self._run, name="jobqueue-loop", daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """End a child that a handler forked as soon as it returns to the loop or to its thread.

        Otherwise its loop would continue the handlers beside it, and its thread would wait for work for ever.
        """
        here = threading.current_thread()
        if here is self._thread:
            getattr(self._loop, "_ready", deque[object]()).clear()
            self._loop.call_soon(forks.end)
        for threads in (*SyncToAsync.context_to_thread_executor.values(), self._default):
            if here in getattr(threads, "_threads", ()):
                threads.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while not self._closing:
            try:
                self._loop.run_forever()
            except BaseException:  # a task that a handler created raised SystemExit; the others go on
                logger.exception("A task that a handler started tried to end the process")
        connections.give_up_all()
        if not asyncio.all_tasks(self._loop):  # otherwise one doesn't stop, or a handler left it behind
            self._loop.close()

    def close(self) -> None:
        """End the loop and the threads in which coroutines used connections. No more work comes."""

        def stop() -> None:
            self._closing = True
            self._loop.stop()

        self._loop.call_soon_threadsafe(stop)
        self._thread.join(1.0)
        for slot in self._free:
            thread = _thread_of(slot)
            if thread is not None:
                thread.submit(connections.give_up_all)
                thread.shutdown()

    def submit(self, several: Sequence[Running]) -> None:
        """Start coroutine handlers. Callable from any thread."""
        self._loop.call_soon_threadsafe(self._start, several)

    def interrupt(self, claim: tuple[str, int]) -> None:
        """Cancel the task of a claim if it still runs."""

        def cancel() -> None:
            if claim in self._tasks:
                self._tasks[claim].cancel()

        self._loop.call_soon_threadsafe(cancel)

    def _start(self, several: Sequence[Running]) -> None:
        for running in several:
            slot = self._free.pop() if self._free else _slot()
            turn = ExitStack()
            turn.enter_context(self._its_turn())
            task = self._task(running, slot.copy())
            if task.done():
                self._ended(running, slot, turn, task)
            else:
                self._tasks[running.assignment.claim] = task
                task.add_done_callback(partial(self._ended, running, slot, turn))

    def _task(self, running: Running, context: Context) -> asyncio.Task[Outcome]:
        if sys.version_info >= (3, 12):  # a handler that never waits skips the loop's queue
            return asyncio.Task(perform_async(running), loop=self._loop, context=context, eager_start=True)
        return self._loop.create_task(perform_async(running), context=context)

    def _ended(self, running: Running, slot: Context, turn: ExitStack, task: asyncio.Task[Outcome]) -> None:
        self._tasks.pop(running.assignment.claim, None)
        # A task that was cancelled before its first step has no outcome.
        outcome = settle_failure(running, asyncio.CancelledError()) if task.cancelled() else task.result()
        thread = _thread_of(slot)
        if thread is None:
            self._tell(running, slot, turn, outcome)
        else:
            tidied = thread.submit(connections.renew)
            tidied.add_done_callback(partial(self._tidied, running, slot, turn, outcome))

    def _tidied(self, running: Running, slot: Context, turn: ExitStack, outcome: Outcome, _: Future[None]) -> None:
        self._loop.call_soon_threadsafe(self._tell, running, slot, turn, outcome)

    def _tell(self, running: Running, slot: Context, turn: ExitStack, outcome: Outcome) -> None:
        turn.close()
        self._free.append(slot)
        self._done(running, outcome)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._pause)

    def _pause(self) -> None:
        self._flushing = False
        self._flush()


def _slot() -> Context:
    context = copy_context()
    context.run(SyncToAsync.thread_sensitive_context.set, ThreadSensitiveContext())
    return context


def _thread_of(slot: Context) -> Executor | None:
    """Return the thread in which a slot's coroutines call synchronous code, if there is one."""
    return SyncToAsync.context_to_thread_executor.get(slot[SyncToAsync.thread_sensitive_context])
