"""Threads of olapdb, which end before the interpreter destroys Arrow's.

Arrow's memory pool and thread pools are static objects of C++, destroyed at the very end of a
process. A thread that still works in Arrow by then aborts the process.  Python itself does not wait
for daemon threads, and a thread in Arrow continues without the interpreter.  So, in this order:

    threading._shutdown   waits for the program's own non-daemon threads; they work as before
    atexit: `_end`        ends merges and statements, waits until no thread works in olapdb any more
    interpreter, C++      torn down

`concurrent.futures` refuses work from the first step on, while the program's threads still run
statements.  `ThreadPool` does not: it works until `_end`, and from then on in the caller's thread.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (later, at the end of the process, it cannot be imported)
import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import cache, cached_property
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, ParamSpec, Protocol, Self, TypeVar

import pyarrow as pa  # its own atexit functions, registered before ours, run after it

from olapdb.errors import QueryWasCancelled

END_SECONDS_MAX = 30.0
"""How long the end of a process waits for working threads. They end at their next batch, part or
page; one call of Arrow takes a second or two at most."""
POLL_SECONDS = 0.002

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")
_Task = tuple[Future[Any], Callable[[], Any]] | None
"""A future and its work; None ends the worker."""

_LIBRARIES = sys.stdlib_module_names | {pa.__name__, "numpy"}


@cache
def cores() -> int:
    """Return the number of the machine's cores. Asking the system each time costs a small query
    more than its threads."""
    return os.cpu_count() or 1


class BackgroundWorker(Protocol):
    """A background worker that must stop before the process ends."""

    def end_soon(self) -> None:
        """Begin to stop; return at once, and take no lock that a working thread may hold for
        long."""


class _Process:
    """The state of this process. `_forked` replaces it in the child of a fork, which has one thread
    only."""

    def __init__(self) -> None:
        self.ending = False
        self.endings: weakref.WeakSet[BackgroundWorker] = weakref.WeakSet()
        self.parked: set[int] = set()


_process = _Process()


def is_ending() -> bool:
    """Return whether the process is ending, so that new work should not begin."""
    return _process.ending


def refuse_if_ending() -> None:
    """Raise QueryWasCancelled if the process is ending, except in the main thread. Long loops call
    this once a round."""
    if _process.ending and threading.current_thread() is not threading.main_thread():
        raise _ending_error()


def park_if_ending() -> None:
    """Block a daemon thread for ever if it begins a statement while the process is ending. The
    interpreter does the same to daemon threads a moment later."""
    if _process.ending and threading.current_thread() is not threading.main_thread():
        _process.parked.add(threading.get_ident())
        while True:
            time.sleep(3_600)


def end_with_process(background: BackgroundWorker) -> None:
    """Register a worker, by a weak reference, so that its `end_soon` is called when the process
    ends."""
    _process.endings.add(background)


class ThreadPool:
    """A few daemon threads, started as needed, that run submitted work in its order.

    It works like `concurrent.futures.ThreadPoolExecutor` and returns its futures, but continues
    while the program's last threads run, see the module.  A pool dropped without `shutdown` ends
    its threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._threads_max = max(threads, 1)
        self._name = name
        self._queue: SimpleQueue[_Task] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = _Count()
        self._lock = threading.Lock()
        self._closed = False
        self._dropped = weakref.finalize(self, _end_workers, self._queue, self._threads)
        self._dropped.atexit = False  # type: ignore[misc]

    def submit(
        self, work: Callable[Arguments, Made], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Future[Made]:
        """Run `work` with its arguments on a thread of the pool; return its future. It runs in the
        calling thread, before this returns, if no thread can be started or the process is ending.
        Raises RuntimeError after `shutdown`."""
        future: Future[Made] = Future()
        task = (future, lambda: work(*arguments, **named))
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            has_thread = not _process.ending and self._provide_thread()
            if has_thread:
                self._queue.put(task)
        if not has_thread:
            _run(*task)
        return future

    def map(self, work: Callable[..., Made], *items: Iterable[Any]) -> Iterator[Made]:
        """Submit one call for each tuple of items at once, as zip() pairs them. Yield the results
        in this order."""
        futures = [self.submit(work, *arguments) for arguments in zip(*items, strict=False)]
        return _results_in_order(futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work. `wait` returns when the threads have ended; `cancel_futures` cancels
        work not started yet. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if cancel_futures:
                    self._cancel_waiting()
                # Not by calling the finalizer, which does nothing any more at the end of the process.
                self._dropped.detach()
                _end_workers(self._queue, self._threads)
        if wait:
            for thread in self._threads:
                thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    def _provide_thread(self) -> bool:
        """Return whether a thread will take one more task. Starts one if none is idle and the pool
        is not full."""
        if self._idle.take() or len(self._threads) >= self._threads_max:
            return True
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(
            target=_work, args=(self._queue, self._idle), name=name, daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # out of threads, or the interpreter is shutting down
            return bool(self._threads)
        self._threads.append(thread)
        return True

    def _cancel_waiting(self) -> None:
        """Cancel all tasks in the queue that no worker has started."""
        while True:
            try:
                task = self._queue.get_nowait()
            except Empty:
                return
            if task is not None:
                task[0].cancel()


def in_threads(
    work: Callable[..., Made], arguments: Sequence[tuple[Any, ...]], threads: int
) -> list[Made]:
    """Return what the work makes of each tuple of arguments, in their order, computed on some threads."""
    if threads == 1 or len(arguments) <= 1:
        return [work(*argument) for argument in arguments]
    with ThreadPool(min(threads, len(arguments)), "olapdb-pieces") as pool:
        return list(pool.map(work, *zip(*arguments, strict=True)))


class _Count:
    """The number of workers that wait for work."""

    def __init__(self) -> None:
        self._semaphore = threading.Semaphore(0)

    def add(self) -> None:
        """Count one more waiting worker."""
        self._semaphore.release()

    def take(self) -> bool:
        """Count one waiting worker less. Return False if none waits."""
        return self._semaphore.acquire(blocking=False)


def _work(queue: SimpleQueue[_Task], idle: _Count) -> None:
    """Run tasks of the queue until a None. Once the process is ending, tasks fail instead. A worker
    holds no reference to the pool, so that a dropped pool ends."""
    while (task := _next(queue, idle)) is not None:
        future, work = task
        if _process.ending:
            if future.set_running_or_notify_cancel():
                future.set_exception(_ending_error())
        else:
            _run(future, work)
        del task, future, work  # else the result would live until the next task


def _next(queue: SimpleQueue[_Task], idle: _Count) -> _Task:
    """Return the next task of the queue. If it is empty, count this worker as waiting and block."""
    try:
        return queue.get_nowait()
    except Empty:
        idle.add()
        return queue.get()


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    """Run the work and give its result or exception to the future. Does nothing if the future was
    cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001  (the future carries it to its waiter)
        future.set_exception(error)
    else:
        future.set_result(answer)


def _results_in_order(futures: list[Future[Made]]) -> Iterator[Made]:
    """Yield the results in the order of the futures. Cancel those not yet yielded when the caller
    stops or one fails."""
    futures.reverse()
    try:
        while futures:
            yield futures.pop().result()
    finally:
        for future in futures:
            future.cancel()


def _end_workers(queue: SimpleQueue[_Task], threads: list[threading.Thread]) -> None:
    """Put one None for each worker into the queue, at which it ends."""
    for _ in threads:
        queue.put(None)


def _ending_error() -> QueryWasCancelled:
    """Return the error of work that is submitted or awaited while the process ends."""
    return QueryWasCancelled("The process is ending; the statement was cancelled.")


# --- the end --------------------------------------------------------------------------------------


def _end() -> None:
    """Stop all work and wait, for a bounded time, until no other thread is in olapdb.

    Ctrl-C does not end the wait: leaving too early aborts the process.
    """
    _process.ending = True
    until = time.monotonic() + END_SECONDS_MAX
    waiting = list(_process.endings)
    while time.monotonic() < until:
        try:
            while waiting:
                waiting.pop().end_soon()
            if not any(_is_at_work(*thread) for thread in sys._current_frames().items()):
                return
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            continue


def _is_at_work(thread_id: int, frame: FrameType | None) -> bool:
    """Return whether another thread runs olapdb's code, or a library's that olapdb called.

    `frame` is the thread's innermost frame. Workers that wait for a task and parked threads do not
    count, nor does the caller's own code that olapdb called (a stream of batches, which may wait
    for ever)."""
    if thread_id == threading.get_ident() or thread_id in _process.parked:
        return False
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "olapdb":
            return frame.f_code not in (_work.__code__, _next.__code__)
        if package not in _LIBRARIES:
            return False
        frame = frame.f_back
    return False


def _forked() -> None:
    """Start with a fresh state in the child of a fork, which has none of the parent's threads."""
    global _process
    _process = _Process()
    _renew_locks_of_properties()


def _renew_locks_of_properties() -> None:
    """Give each cached_property a free lock: until Python 3.12 it has one for all instances, and a
    thread that computed a value at the fork would hold its copy in the child for ever."""
    if sys.version_info >= (3, 12):
        return
    for thing in gc.get_objects():
        if type(thing) is cached_property:
            vars(thing)["lock"] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_end)
