"""Chains of operators: what a thread does for a task in one go, and what begins and ends around it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
import pytest

import olapdb
from olapdb.compute.context import ExecutionContext
from olapdb.compute.stages import Deferred, KnownTasks, Stage, all_batches, begun
from olapdb.config import tuning
from olapdb.dbapi.cursor import Cursor
from olapdb.execute.operators.coded_texts import _Whole
from olapdb.observation import RowCosts

pytestmark = pytest.mark.feature("select")


SHORT = (
    "ALONE_MICROSECONDS",
    "ALONE_TASK_MICROSECONDS",
    "TASK_MICROSECONDS",
    "STAGE_MICROSECONDS",
    "ALONE_FIRST_MICROSECONDS",
)
"""With 0 for each of these no work is too short for threads."""


def context_with(threads: int, batch_rows: int = 100) -> ExecutionContext:
    """Return a context without a store."""
    return ExecutionContext(settings={"max_threads": threads, "max_block_size": batch_rows})


def batch(*numbers: int) -> pa.RecordBatch:
    """Return a batch of one column of numbers."""
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], names=["n"])


def numbers_of(batches: Iterator[pa.RecordBatch]) -> list[int]:
    """Return the numbers of batches."""
    return [number for each in batches for number in each.column(0).to_pylist()]


def read(task: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch of a task: three numbers."""
    yield batch(task, task + 1, task + 2)


def twice(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch two times."""
    yield rows
    yield rows


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_chain_makes_what_its_stages_make(threads: int) -> None:
    tasks = [*range(0, 60, 3)]
    context = context_with(threads)

    def stages() -> Stage:
        return Stage(
            context, twice, Stage(context, read, tasks, known=KnownTasks([3] * len(tasks)))
        )

    expected = [n for task in tasks for _ in range(2) for n in (task, task + 1, task + 2)]
    assert numbers_of(stages()) == expected
    with ExitStack() as stack:
        chain = stages().chain(stack).then(lambda batches: numbers_of(iter(batches)))
        assert list(chain.items) == tasks
        assert [n for numbers in chain.run(context) for n in numbers] == expected


def test_batches_drawn_from_a_stage_are_cut_and_none_is_empty() -> None:
    context = context_with(2, batch_rows=2)
    stage = Stage(context, lambda rows: (rows, rows.slice(0, 0)), [batch(1, 2, 3), batch(4)])
    assert [rows.num_rows for rows in stage] == [2, 1, 1]


def test_a_stage_gathers_the_batches_of_a_task() -> None:
    context = context_with(2)
    seen: list[int] = []

    def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.Table.from_batches(list(batches)).combine_chunks().to_batches()[0]

    def noted(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        seen.append(rows.num_rows)
        yield rows

    halves = Stage(context, twice, Stage(context, read, [0, 10]))
    with ExitStack() as stack:
        chain = Stage(context, noted, halves, gather=gathered).chain(stack)
        rows = [numbers_of(iter(batches)) for batches in map(chain.work, chain.items)]
    assert rows == [[0, 1, 2, 0, 1, 2], [10, 11, 12, 10, 11, 12]]
    assert seen == [6, 6]


class Begun:
    """A deferred stage that counts how often it begins and ends."""

    def __init__(self, context: ExecutionContext) -> None:
        self.began: list[bool] = []
        self.ended = 0
        self.rows = Deferred(self._begin)
        self._context = context

    @contextmanager
    def _begin(self, in_chain: bool) -> Iterator[Iterator[pa.RecordBatch]]:
        self.began.append(in_chain)
        try:
            yield Stage(self._context, read, [0, 3])
        finally:
            self.ended += 1


def test_what_a_chain_begins_ends_with_it() -> None:
    context = context_with(2)
    deferred = Begun(context)
    rows = Stage(context, twice, deferred.rows)
    assert deferred.began == []
    with ExitStack() as stack:
        assert isinstance(begun(rows, stack), Stage)
        chain = rows.chain(stack)
        assert deferred.began == [True]
        assert [len(list(batches)) for batches in chain.run(context)] == [2, 2]
        assert deferred.ended == 0
    assert (deferred.began, deferred.ended) == ([True], 1)


def test_what_drawing_batches_begins_ends_when_they_are_closed() -> None:
    deferred = Begun(context_with(2))
    deferred.rows.close()
    assert deferred.began == []
    assert next(deferred.rows).num_rows == 3
    assert (deferred.began, deferred.ended) == ([False], 0)
    deferred.rows.close()
    assert deferred.ended == 1


def test_an_error_in_a_stage_ends_what_was_begun() -> None:
    context = context_with(2)
    deferred = Begun(context)

    def failing(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        raise ValueError("a stage failed")

    with pytest.raises(ValueError, match="a stage failed"), ExitStack() as stack:
        list(map(list, Stage(context, failing, deferred.rows).chain(stack).run(context)))
    assert deferred.ended == 1


def test_short_work_stays_in_the_thread_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        return 2 * item

    rows = [10] * 20
    monkeypatch.setattr(tuning, "ALONE_MICROSECONDS", 1 << 62)
    context = context_with(2)
    assert [*context.parallel_if_long(work, range(20), rows)] == [*range(0, 40, 2)]
    assert threads == {threading.get_ident()}
    for name in SHORT:
        monkeypatch.setattr(tuning, name, 0)
    assert [*context.parallel_if_long(work, range(20), rows)] == [*range(0, 40, 2)]
    context.close()
    assert len(threads) > 1


def test_a_second_item_decides_where_a_first_one_of_few_rows_leaves_it_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first item costs a lot by itself and says that rows do; the second one, of many rows, costs no more."""
    threads: set[int] = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        now[0] += 0.002
        return item

    now = [0.0]
    monkeypatch.setattr("olapdb.compute.context.time.perf_counter", lambda: now[0])
    rows = [10_000, *[100_000] * 9]
    context = context_with(2)
    assert [*context.parallel_if_long(work, range(10), rows)] == [*range(10)]
    assert threads == {threading.get_ident()}
    monkeypatch.setattr(tuning, "UNSURE_FACTOR", 0)
    assert [*context.parallel_if_long(work, range(10), rows)] == [*range(10)]
    context.close()
    assert len(threads) > 1


def test_work_that_is_known_to_be_long_begins_in_threads() -> None:
    threads: set[int] = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        return sum(range(item + 100_000))

    context = context_with(2)
    answers = [*context.parallel_if_long(work, range(9), [1_000] * 9, is_long=True)]
    context.close()
    assert answers == [sum(range(item + 100_000)) for item in range(9)]
    assert threading.get_ident() not in threads
    assert 0 < context.rows_at_once < 1 << 40  # the first item told what a row costs


def test_batches_that_come_one_by_one_wait_for_threads_only_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []

    def work(item: int) -> int:
        threads.append(threading.get_ident())
        return -item

    context = context_with(2)
    monkeypatch.setattr(tuning, "ALONE_FIRST_MICROSECONDS", 1 << 62)
    assert [*context.parallel_if_slow(work, iter(range(9)))] == [*range(0, -9, -1)]
    assert set(threads) == {threading.get_ident()}
    threads.clear()
    monkeypatch.setattr(tuning, "ALONE_FIRST_MICROSECONDS", 0)
    assert [*context.parallel_if_slow(work, iter(range(9)))] == [*range(0, -9, -1)]
    context.close()
    assert threads.count(threading.get_ident()) == 1
    assert len(threads) == 9


def test_all_batches_are_those_of_the_chain() -> None:
    context = context_with(2)
    deferred = Begun(context)
    rows = Stage(context, twice, deferred.rows)
    expected = [*Stage(context, twice, Begun(context).rows)]
    batches = all_batches(rows, context)
    assert deferred.began == []
    assert [*batches] == expected
    assert (deferred.began, deferred.ended) == ([True], 1)
    assert [*all_batches(iter(expected), context)] == expected


def test_threads_share_the_texts_of_a_dictionary() -> None:
    whole = _Whole(50_000, threads=2)
    both_compute = threading.Barrier(2)
    computed: list[tuple[int, int]] = []
    answers: list[pa.Array | None] = []

    waited: set[int] = set()

    def compute(start: int, stop: int) -> pa.Array:
        if threading.get_ident() not in waited:
            waited.add(threading.get_ident())
            both_compute.wait(60)
        computed.append((start, stop))
        return pa.array(range(start, stop))

    workers = [
        threading.Thread(target=lambda: answers.append(whole.values(compute))) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [answer.to_pylist() for answer in answers if answer is not None] == [
        [*range(50_000)]
    ] * 2
    assert len(computed) == len(set(computed)) == 4


def test_texts_that_fail_have_no_values_and_nobody_waits_for_them() -> None:
    whole = _Whole(50_000, threads=2)

    def failing(start: int, stop: int) -> pa.Array | None:
        if start:
            raise RuntimeError("a slice failed")
        return pa.array(range(start, stop))

    with pytest.raises(RuntimeError):
        whole.values(failing)
    assert whole.values(lambda start, stop: pa.array(range(start, stop))) is None


@pytest.fixture(scope="module")
def cursor() -> Iterator[Cursor]:
    """Yield a cursor over 400,000 rows in two parts, and 1,000 names."""
    with olapdb.connect(":memory:") as connection:
        made = connection.cursor()
        made.execute("CREATE TABLE t (n UInt64, s String) ENGINE = MergeTree ORDER BY n")
        for start in (0, 200_000):
            made.execute(
                "INSERT INTO t SELECT number * 7919 % 400009, toString(number % 1000)"
                f" FROM numbers({start}, 200000)"
            )
        made.execute("CREATE TABLE names (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
        made.execute("INSERT INTO names SELECT number, toString(number % 10) FROM numbers(1000)")
        yield made


QUERIES = (
    "SELECT s, count(), uniqExact(n), uniq(n) FROM t GROUP BY s ORDER BY s",
    "SELECT n % 50000 AS k, s, count(), sum(n) FROM t GROUP BY k, s ORDER BY k, s LIMIT 2000",
    "SELECT name, count(), sum(n) FROM t JOIN names ON n % 1000 = id WHERE s != '7' GROUP BY name"
    " ORDER BY name",
    "SELECT name, groupUniqArray(n % 100) FROM t LEFT JOIN names ON n % 2000 = id GROUP BY name"
    " ORDER BY name",
    "SELECT DISTINCT n % 70000 AS k FROM t WHERE s LIKE '%1%' ORDER BY k",
    "SELECT count() FROM (SELECT DISTINCT n % 70000, s FROM t)",
    "SELECT s, median(n), quantileExact(0.9)(n) FROM t GROUP BY s ORDER BY s",
)


@pytest.mark.parametrize("query", QUERIES)
def test_threads_change_no_answer(
    cursor: Cursor, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SHORT:
        monkeypatch.setattr(tuning, name, 0)
    for name in ("MERGED_ROWS_MIN", "MERGED_ELEMENTS_MIN", "SLICED_TEXTS_MIN"):
        monkeypatch.setattr(tuning, name, 1)
    expected = cursor.execute(f"{query} SETTINGS max_threads = 1").fetchall()
    assert expected
    for threads in (2, 4):
        assert cursor.execute(f"{query} SETTINGS max_threads = {threads}").fetchall() == expected


def test_what_an_earlier_run_took_decides_whether_threads_begin_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A first run judges by its first items, in the thread of the query; the next one knows what rows cost."""
    threads: list[int] = []
    microseconds = [100.0]

    def work(item: int) -> int:
        threads.append(threading.get_ident())
        return item

    monkeypatch.setattr(
        "olapdb.observation.TaskMeter.microseconds", property(lambda _: microseconds[0])
    )
    monkeypatch.setattr("olapdb.observation.TaskMeter.waited_microseconds", 1.0)
    costs, rows = RowCosts(), [100] * 10

    def run() -> int:
        """Return how many items were done in the thread of the query."""
        threads.clear()
        context = context_with(2)
        context.row_costs = costs
        assert [*context.parallel_if_long(work, range(10), rows, scan="t")] == [*range(10)]
        context.close()
        return threads.count(threading.get_ident())

    assert run() > 0
    microseconds[0] = 1e9
    assert run() == 10  # the first run took little
    assert run() == 0  # the second one took long
    microseconds[0] = 1.0
    assert run() == 0
    assert run() == 10


def test_a_run_that_does_not_end_tells_nothing_of_rows() -> None:
    context = context_with(1)
    answers = context.parallel_if_long(lambda item: item, range(10), [100] * 10, scan="t")
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert context.row_costs.expected("t", 100) is None


def test_no_task_of_a_scan_is_small_to_judge_by_once_a_run_has_told_what_rows_take() -> None:
    seen: list[list[int]] = []
    original = ExecutionContext.parallel_if_long

    def noted(self: ExecutionContext, *arguments: Any, **named: Any) -> Iterator[Any]:
        seen.append([*arguments[2]])
        return original(self, *arguments, **named)

    with olapdb.connect(settings={"max_threads": 2}) as connection:
        connection.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
        connection.execute("INSERT INTO t SELECT number FROM numbers(600000)")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ExecutionContext, "parallel_if_long", noted)
            answers = [connection.execute("SELECT sum(n + 1) FROM t").fetchall() for _ in range(2)]
    assert answers[0] == answers[1] == [(600_000 * 600_001 // 2,)]
    first, second = seen
    assert first[0] < max(first)
    assert sum(first) == sum(second) == 600_000
    assert len(second) < len(first)
    assert second[0] == max(second)
