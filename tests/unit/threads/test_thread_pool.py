"""olapdb's thread pool works like that of concurrent.futures, but until the very end of the
process."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref

import pytest

from olapdb import threads
from olapdb.threads import ThreadPool

pytestmark = pytest.mark.feature("settings", "concurrency")


def test_answers_come_in_the_order_of_the_items() -> None:
    with ThreadPool(3, "test") as pool:
        assert list(pool.map(lambda a, b: a * b, range(20), range(20))) == [
            n * n for n in range(20)
        ]
        assert list(pool.map(str, [])) == []


def test_an_error_is_that_of_its_future() -> None:
    with ThreadPool(2, "test") as pool:
        failing = pool.submit(int, "x")
        assert pool.submit(int, "7").result() == 7
        with pytest.raises(ValueError, match="invalid literal"):
            failing.result()


def test_as_many_run_at_once_as_there_are_threads_and_no_more() -> None:
    together = threading.Barrier(3)
    running, most, lock = [0], [0], threading.Lock()

    def work(_: int) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(60)
        with lock:
            running[0] -= 1

    with ThreadPool(3, "test") as pool:
        list(pool.map(work, range(9)))
    assert most[0] == 3


def test_as_many_tasks_as_threads_run_at_once() -> None:
    for _ in range(20):
        together = threading.Barrier(2)
        with ThreadPool(2, "test") as pool:
            list(pool.map(lambda barrier: barrier.wait(20), [together, together]))


def test_a_shutdown_finishes_what_was_submitted_or_cancels_it() -> None:
    for cancel in (False, True):
        began, go_on = threading.Event(), threading.Event()

        def work(began: threading.Event = began, go_on: threading.Event = go_on) -> int:
            began.set()
            go_on.wait(60)
            return 1

        pool = ThreadPool(1, "test")
        first, second = pool.submit(work), pool.submit(work)
        assert began.wait(60)
        pool.shutdown(wait=False, cancel_futures=cancel)
        go_on.set()
        pool.shutdown()
        assert first.result() == 1
        assert second.cancelled() == cancel
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(work)


def test_a_pool_that_is_dropped_lets_its_threads_go() -> None:
    pool = ThreadPool(2, "test")
    pool.submit(int).result()
    hires = list(pool._hires)
    alive = weakref.ref(pool)
    del pool
    gc.collect()
    assert alive() is None
    assert hires
    for hire in hires:
        assert hire.ended.wait(60)


def test_threads_go_from_pool_to_pool_and_end_when_none_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_process", threads._Process())  # without threads of other tests
    monkeypatch.setattr(threads, "IDLE_SECONDS_MAX", 0.2)

    def together(barrier: threading.Barrier) -> threading.Thread:
        barrier.wait(60)
        return threading.current_thread()

    workers, names = [], []
    for name in ("first", "second"):
        barrier = threading.Barrier(2)
        with ThreadPool(2, name) as pool:
            workers.append(set(pool.map(together, [barrier, barrier])))
            names.append({thread.name for thread in workers[-1]})
    assert workers[0] == workers[1]
    assert names == [{"first_0", "first_1"}, {"second_0", "second_1"}]
    for thread in workers[0]:
        thread.join(60)
        assert not thread.is_alive()
    with ThreadPool(1, "third") as pool:
        assert pool.submit(threading.current_thread).result() not in workers[0]


def test_no_more_threads_wait_for_a_pool_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_process", threads._Process())
    monkeypatch.setattr(threads, "IDLE_THREADS_MAX", 1)
    barrier = threading.Barrier(3)
    with ThreadPool(3, "test") as pool:
        workers = list(pool.map(lambda _: (barrier.wait(60), threading.current_thread())[1], "abc"))
    until = time.monotonic() + 60
    while sum(thread.is_alive() for thread in workers) != 1:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_pools_of_many_threads_at_once_lose_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads whose wait for a pool ends at the moment when one comes take it."""
    monkeypatch.setattr(threads, "_process", threads._Process())
    monkeypatch.setattr(threads, "IDLE_SECONDS_MAX", 0.0005)

    def run(_: int) -> int:
        total = 0
        for _ in range(60):
            with ThreadPool(2, "inner") as pool:
                total += sum(pool.map(int, range(5)))
            time.sleep(0.0005)
        return total

    with ThreadPool(6, "outer") as pool:
        assert list(pool.map(run, range(6))) == [600] * 6


def test_an_answer_is_not_held_by_an_idle_thread() -> None:
    class Answer:
        pass

    with ThreadPool(1, "test") as pool:
        future = pool.submit(Answer)
        answer = weakref.ref(future.result())
        del future
        pool.submit(int).result()  # by then the thread is past the first
        gc.collect()
        assert answer() is None


AT_THE_END = """
import atexit, threading
from olapdb.threads import ThreadPool, is_ending

def late():
    pool = ThreadPool(2, "late")
    print("after the end" if is_ending() else "before it", pool.submit(threading.current_thread).result()
          is threading.main_thread(), flush=True)


import olapdb.threads
atexit.unregister(olapdb.threads._end)
atexit.register(late)
atexit.register(olapdb.threads._end)

def works_on():
    threading.main_thread().join()
    pool = ThreadPool(2, "works")
    print(sum(pool.map(int, range(5))), flush=True)

threading.Thread(target=works_on).start()
"""


def test_a_pool_works_while_the_last_threads_run_and_after_the_end_in_the_caller() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["10", "after the end True"]
    assert done.stderr == ""
