"""Threads of olapdb, which end before the interpreter destroys Arrow's.

Arrow's memory pool and thread pools are static objects of C++, destroyed at the very end of a
process. A thread that still works in Arrow by then aborts the process.  Python itself does not wait
for daemon threads, and a thread in Arrow continues without the interpreter.  So, in this order:

    threading._shutdown   waits for the program's own non-daemon threads; they work as before
    atexit: `_end`        ends merges and statements, waits until no thread works in olapdb any more
    interpreter, C++      torn down

`concurrent.futures` refuses work from the first step on, while the program's threads still run
statements.  `ThreadPool` does not: it works until `_end`, and from then on in the caller's thread.

Pools live as long as a part of a statement, their threads longer: a thread whose pool has ended waits a
few seconds for the next one.  Arrow's allocator keeps freed memory by the thread, so a new thread gets
fresh memory, which the system has to clear: half of the processor time of 20 MB of short-lived arrays.
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
IDLE_SECONDS_MAX = 5.0
"""How long a thread without a pool waits for the next one before it ends."""
IDLE_THREADS_MAX = 16
"""Threads that wait for a pool; more end at once."""

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")
_Task = tuple[Future[Any], Callable[[], Any]]
"""A future and its work."""

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
        self._lock = threading.Lock()
        self._waiting: list[_Inbox] = []

    def hire(self, hire: _Hire) -> None:
        """Give the hire to the thread that began to wait last, else to a new thread. Raises
        RuntimeError if none can be started."""
        with self._lock:
            inbox = self._waiting.pop() if self._waiting else None
        if inbox is not None:
            inbox.put(hire)
            return
        threading.Thread(target=_serve, args=(hire,), name=hire.name, daemon=True).start()

    def await_hire(self, inbox: _Inbox) -> bool:
        """Let the next hire come to the inbox. Return False where enough threads wait already."""
        with self._lock:
            if len(self._waiting) >= IDLE_THREADS_MAX:
                return False
            self._waiting.append(inbox)
            return True

    def next_hire(self, inbox: _Inbox) -> _Hire | None:
        """Return the hire that comes to the inbox, None if none came for IDLE_SECONDS_MAX."""
        try:
            return inbox.get(timeout=IDLE_SECONDS_MAX)
        except Empty:
            with self._lock:
                if inbox in self._waiting:
                    self._waiting.remove(inbox)
                    return None
            return inbox.get()  # it was just taken from those that wait


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


class _Hire:
    """The work of one thread for one pool: `first`, then what it takes from the queue, until a None.

    The first task does not go through the queue: the thread would find the queue empty before the
    task is in it, and count as idle while it works."""

    def __init__(
        self, queue: SimpleQueue[_Task | None], idle: _Count, name: str, first: _Task | None
    ) -> None:
        self.queue = queue
        self.idle = idle
        self.name = name
        self.first = first
        self.ended = threading.Event()


_Inbox = SimpleQueue[_Hire]


def _serve(hire: _Hire | None) -> None:
    """Work for one pool after the other, as the thread that each names; end when no other comes."""
    process, thread = _process, threading.current_thread()
    inbox = _Inbox()
    while hire is not None:
        thread.name = hire.name
        _work(hire)
        # Before the pool's owner goes on, so that its next pool gets this thread.
        is_waiting = process.await_hire(inbox)
        hire.ended.set()
        del hire
        hire = process.next_hire(inbox) if is_waiting else None


class ThreadPool:
    """A few daemon threads, hired as needed, that run submitted work in its order.

    It works like `concurrent.futures.ThreadPoolExecutor` and returns its futures, but continues
    while the program's last threads run, see the module.  A pool dropped without `shutdown` lets
    its threads go.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._threads_max = max(threads, 1)
        self._name = name
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._hires: list[_Hire] = []
        self._idle = _Count()
        self._lock = threading.Lock()
        self._closed = False
        self._dropped = weakref.finalize(self, _end_workers, self._queue, self._hires)
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
            has_thread = not _process.ending and self._assign(task)
        if not has_thread:
            _run(*task)
        return future

    def map(self, work: Callable[..., Made], *items: Iterable[Any]) -> Iterator[Made]:
        """Submit one call for each tuple of items at once, as zip() pairs them. Yield the results
        in this order."""
        futures = [self.submit(work, *arguments) for arguments in zip(*items, strict=False)]
        return _results_in_order(futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work. `wait` returns when no thread works any more; `cancel_futures` cancels
        work not started yet. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if cancel_futures:
                    self._cancel_waiting()
                # Not by calling the finalizer, which does nothing any more at the end of the process.
                self._dropped.detach()
                _end_workers(self._queue, self._hires)
        if wait:
            for hire in self._hires:
                hire.ended.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    def _assign(self, task: _Task) -> bool:
        """Return whether a thread will run the task. Hires one for it if none is idle and the pool
        is not full."""
        if not self._idle.take() and len(self._hires) < self._threads_max:
            name = f"{self._name}_{len(self._hires)}"
            hire = _Hire(self._queue, self._idle, name, task)
            try:
                _process.hire(hire)
            except RuntimeError:  # out of threads, or the interpreter is shutting down
                if not self._hires:
                    return False
            else:
                self._hires.append(hire)
                return True
        self._queue.put(task)
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


def _work(hire: _Hire) -> None:
    """Run the first task and those of the queue until a None. Once the process is ending, tasks fail
    instead. A worker holds no reference to the pool, so that a dropped pool lets it go."""
    task, hire.first = hire.first, None
    while task is not None:
        future, work = task
        if _process.ending:
            if future.set_running_or_notify_cancel():
                future.set_exception(_ending_error())
        else:
            _run(future, work)
        del task, future, work  # else the result would live until the next task
        task = _next(hire.queue, hire.idle)


def _next(queue: SimpleQueue[_Task | None], idle: _Count) -> _Task | None:
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


def _end_workers(queue: SimpleQueue[_Task | None], hires: list[_Hire]) -> None:
    """Put one None for each worker into the queue, at which its work for the pool ends."""
    for _ in hires:
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
            return frame.f_code not in _IDLE_CODES
        if package not in _LIBRARIES:
            return False
        frame = frame.f_back
    return False


_IDLE_CODES = {work.__code__ for work in (_work, _next, _serve, _Process.next_hire)}
"""Code in which a worker waits for a task or a pool."""


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
