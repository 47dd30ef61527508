"""Threads of olapdb, and their end before the interpreter takes Arrow down.

Arrow's memory pool and thread pools are static objects of C++, destroyed at the very end of a process.
A thread that still works in Arrow by then aborts the process.  Python itself does not wait for daemon
threads, and a thread in Arrow does not need the interpreter to go on.  So, in this order:

    threading._shutdown   waits for the program's own threads that are no daemons; they work as before
    atexit: `_end`        ends merges and statements, waits until no thread works in olapdb any more
    interpreter, C++      torn down

`concurrent.futures` would refuse work from the first step on, while the program's threads still run
statements.  `ThreadPool` does not: it works until `_end`, and from then on in the caller's thread.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (later, at the end of the process, it cannot be imported)
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import cache
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, ParamSpec, Protocol, Self, TypeVar

import pyarrow as pa  # its own atexit functions, registered before ours, run after it

from olapdb.errors import QueryWasCancelled

END_SECONDS_MAX = 30.0
"""How long the end of a process waits for threads at work. They end at their next batch, part or
page; one call of Arrow takes a second or two at most."""
POLL_SECONDS = 0.002

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")
_Task = tuple[Future[Any], Callable[[], Any]] | None
"""None: the worker ends."""

_LIBRARIES = sys.stdlib_module_names | {pa.__name__, "numpy"}


@cache
def cores() -> int:
    """Return the number of the machine's cores. Asking the system each time costs a small query
    more than its threads."""
    return os.cpu_count() or 1


class Ending(Protocol):
    """What works in the background, and has to stop before the process ends."""

    def end_soon(self) -> None:
        """Begin to stop; return at once, and take no lock that a thread at work may hold for long."""


class _Process:
    """The state of this process; `forked` makes it anew in the child of a fork, which has no thread but
    the one that forked."""

    def __init__(self) -> None:
        self.ending = False
        self.endings: weakref.WeakSet[Ending] = weakref.WeakSet()
        self.parked: set[int] = set()


_process = _Process()


def is_ending() -> bool:
    """Whether the process ends: work that has not begun yet is not worth it."""
    return _process.ending


def refuse_if_ending() -> None:
    """Raise QueryWasCancelled where the process ends; for loops of long work, once a round."""
    if _process.ending and threading.current_thread() is not threading.main_thread():
        raise _ending_error()


def park_if_ending() -> None:
    """Keep a daemon thread that begins a statement at the end of the process from doing so, for ever:
    the interpreter does the same with daemon threads a moment later."""
    if _process.ending and threading.current_thread() is not threading.main_thread():
        _process.parked.add(threading.get_ident())
        while True:
            time.sleep(3_600)


def end_with_process(one: Ending) -> None:
    """Have `end_soon` of `one` called when the process ends, as long as `one` lives."""
    _process.endings.add(one)


class ThreadPool:
    """A few daemon threads, begun as they are needed, that run what is submitted in its order.

    As `concurrent.futures.ThreadPoolExecutor`, whose futures it gives, but it goes on while the
    program's last threads run, see above.  A pool that is dropped without `shutdown` ends its threads.
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
        future: Future[Made] = Future()
        task = (future, lambda: work(*arguments, **named))
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            served = not _process.ending and self._serve()
            if served:
                self._queue.put(task)
        if not served:
            _run(*task)
        return future

    def map(self, work: Callable[..., Made], *items: Iterable[Any]) -> Iterator[Made]:
        """Submit all at once; give the answers in the items' order."""
        futures = [self.submit(work, *one) for one in zip(*items, strict=False)]
        return _answers(futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; idempotent."""
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

    def _serve(self) -> bool:
        """Have a thread for one more task; whether there is one."""
        if self._idle.take() or len(self._threads) >= self._threads_max:
            return True
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(
            target=_work, args=(self._queue, self._idle), name=name, daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the machine gives no more, or the interpreter is on its way out
            return bool(self._threads)
        self._threads.append(thread)
        return True

    def _cancel_waiting(self) -> None:
        while True:
            try:
                task = self._queue.get_nowait()
            except Empty:
                return
            if task is not None:
                task[0].cancel()


class _Count:
    """How many workers wait for work."""

    def __init__(self) -> None:
        self._semaphore = threading.Semaphore(0)

    def add(self) -> None:
        self._semaphore.release()

    def take(self) -> bool:
        return self._semaphore.acquire(blocking=False)


def _work(queue: SimpleQueue[_Task], idle: _Count) -> None:
    """A worker: it holds no reference to the pool, so that a pool which is dropped ends."""
    while (task := _next(queue, idle)) is not None:
        future, work = task
        if _process.ending:
            if future.set_running_or_notify_cancel():
                future.set_exception(_ending_error())
        else:
            _run(future, work)
        del task, future, work  # or the answer would live until the next task comes


def _next(queue: SimpleQueue[_Task], idle: _Count) -> _Task:
    try:
        return queue.get_nowait()
    except Empty:
        idle.add()
        return queue.get()


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001  (carried to who waits for the future)
        future.set_exception(error)
    else:
        future.set_result(answer)


def _answers(futures: list[Future[Made]]) -> Iterator[Made]:
    futures.reverse()
    try:
        while futures:
            yield futures.pop().result()
    finally:
        for future in futures:
            future.cancel()


def _end_workers(queue: SimpleQueue[_Task], threads: list[threading.Thread]) -> None:
    for _ in threads:
        queue.put(None)


def _ending_error() -> QueryWasCancelled:
    return QueryWasCancelled("The process is ending; the statement was cancelled.")


# --- the end --------------------------------------------------------------------------------------


def _end() -> None:
    """Stop all work and wait until no other thread is in olapdb, for a bounded time. Ctrl-C does not
    end the wait: leaving too early is what aborts the process."""
    _process.ending = True
    until = time.monotonic() + END_SECONDS_MAX
    waiting = list(_process.endings)
    while time.monotonic() < until:
        try:
            while waiting:
                waiting.pop().end_soon()
            if not any(_is_at_work(*one) for one in sys._current_frames().items()):
                return
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            continue


def _is_at_work(thread_id: int, frame: FrameType | None) -> bool:
    """Whether another thread runs olapdb's code, or a library's that it called. The caller's own code
    that olapdb called (a stream of batches, which may wait for ever) does not count."""
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
    global _process
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_end)
