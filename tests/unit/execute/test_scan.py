"""Scans of stored parts: reading, pruning and FINAL."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.config import tuning
from olapdb.errors import TooManyRows
from olapdb.execute.operators import block_pieces, part_scan, scan
from olapdb.execute.pruning.explain_indexes import explain_indexes
from olapdb.plan import nodes
from olapdb.plan.expressions import Expression, ScalarSubquery
from olapdb.storage.reader import PartReader
from olapdb.types import DATE, FLOAT64, INT64, STRING, UINT8, UINT64, Nullable
from tests.unit.execute.build import (
    Stored,
    aggregate,
    call,
    col,
    const,
    in_values,
    rows_of,
    stored,
    values,
)

pytestmark = pytest.mark.feature("select")

K, V, D = col("k", UINT64), col("v", INT64), col("d", DATE)


def numbers(rows: int = 10_000, granularity: int = 1000) -> Stored:
    table = stored({"k": UINT64, "v": INT64, "s": STRING}, order_by=["k"], granularity=granularity)
    table.insert(
        {"k": range(rows), "v": [n % 7 for n in range(rows)], "s": [f"s{n}" for n in range(rows)]}
    )
    return table


def run_scan(table: Stored, scan: nodes.Scan, **settings: object):  # type: ignore[no-untyped-def]
    context = table.context(**settings)
    return rows_of(scan, context), context.statistics


def test_a_point_query_reads_one_granule() -> None:
    table = numbers()
    rows, read = run_scan(table, table.scan("s", where=call("equals", K, const(4321, UINT64))))
    assert rows == [("s4321",)]
    assert (read.granules_read, read.granules_total, read.rows_read) == (1, 10, 1000)


def test_conditions_of_every_shape_prune() -> None:
    table = numbers()
    n = lambda v: const(v, UINT64)  # noqa: E731
    subquery = values({"m": (UINT64, [2500])})
    cases: list[tuple[Expression, int]] = [
        (call("less", K, n(1500)), 2),
        (call("greaterOrEquals", n(1500), K), 2),
        (call("and", call("greater", K, n(2999)), call("lessOrEquals", K, n(3000))), 1),
        (call("or", call("less", K, n(10)), call("greater", K, n(9990))), 2),
        (call("not", call("less", K, n(9000))), 1),
        (call("notEquals", K, n(5)), 10),
        (in_values(K, [1, 2, 9999, 50_000]), 2),
        (in_values(K, [1, 2], negated=True), 10),
        (call("equals", call("intDiv", K, const(1000, UINT64)), n(3)), 1),
        (call("isNull", K), 0),
        (const(0, UINT8), 0),
        (call("equals", K, ScalarSubquery(UINT64, subquery)), 1),
    ]
    for condition, granules in cases:
        rows, read = run_scan(table, table.scan("k", where=condition))
        all_rows = rows_of(nodes.Filter(table.scan("k"), condition), table.context())
        assert rows == all_rows
        assert read.granules_read == granules, condition


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(-5, 5),
                st.one_of(st.none(), st.integers(-3, 3)),
                st.sampled_from([-1.5, 0.0, 2.0, float("nan")]),
                st.sampled_from(["", "a", "ab", "b"]),
            ),
            min_size=1,
            max_size=8,
        ),
        max_size=4,
    ),
    st.data(),
)
def test_pruning_never_changes_an_answer(
    blocks: list[list[tuple[int, int | None, float, str]]], data: st.DataObject
) -> None:
    types = {"i": INT64, "n": Nullable(INT64), "f": FLOAT64, "s": STRING}
    table = stored(types, order_by=["i"], granularity=2)
    for block in blocks:
        table.insert({name: [r[at] for r in block] for at, name in enumerate(types)})

    def comparison() -> st.SearchStrategy[Expression]:
        names = ["less", "lessOrEquals", "greater", "greaterOrEquals", "equals", "notEquals"]
        constants = {
            "i": st.integers(-6, 6).map(lambda v: const(v, INT64)),
            "n": st.integers(-4, 4).map(lambda v: const(v, INT64)),
            "f": st.sampled_from([-2.0, 0.0, 2.0]).map(lambda v: const(v, FLOAT64)),
            "s": st.sampled_from(["", "a", "aa", "c"]).map(lambda v: const(v, STRING)),
        }
        each = [
            st.tuples(
                st.just(col(name, types[name])), st.sampled_from(names), constant, st.booleans()
            ).map(lambda t: call(t[1], *((t[0], t[2]) if t[3] else (t[2], t[0]))))
            for name, constant in constants.items()
        ]
        inside = st.lists(st.integers(-6, 6), min_size=1, unique=True).map(
            lambda v: in_values(col("i", INT64), v)
        )
        null = st.just(call("isNull", col("n", types["n"])))
        return st.one_of(*each, inside, null)

    condition = data.draw(
        st.recursive(
            comparison(),
            lambda inner: st.one_of(
                inner.map(lambda e: call("not", e)),
                st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(lambda t: call(*t)),
            ),
            max_leaves=4,
        )
    )
    pruned = rows_of(table.scan("i", "s", where=condition), table.context())
    full = rows_of(nodes.Filter(table.scan(), condition), table.context())
    assert pruned == [(r[0], r[3]) for r in full]


def by_month() -> Stored:
    table = stored(
        {"d": DATE, "k": UINT64, "v": INT64},
        order_by=["k"],
        partition_by="toYYYYMM(d)",
        granularity=100,
    )
    days = [datetime.date(2013, month, day) for month in range(1, 13) for day in (1, 15, 28)]
    table.insert({"d": days * 10, "k": range(360), "v": [1] * 360})
    return table


@pytest.mark.parametrize(
    "condition",
    [
        call("equals", D, const(datetime.date(2013, 3, 15), DATE)),
        call("equals", call("toStartOfMonth", D), const(datetime.date(2013, 3, 1), DATE)),
    ],
)
def test_a_partition_is_pruned_by_its_columns(condition: Expression) -> None:
    table = by_month()
    rows, read = run_scan(table, table.scan("v", where=condition))
    assert rows
    assert (read.parts_read, read.parts_total, read.rows_read) == (1, 12, 30)


def test_a_partition_is_pruned_by_its_value_and_its_id() -> None:
    table = stored({"k": UINT64, "s": STRING}, partition_by="k % 4")
    table.insert({"k": range(100), "s": ["x"] * 100})
    modulo = call("equals", call("modulo", K, const(4, UINT8)), const(3, UINT8))
    rows, read = run_scan(table, table.scan("k", where=modulo))
    assert (len(rows), read.parts_read) == (25, 1)
    by_id = call("equals", col("_partition_id", STRING), const("2", STRING))
    rows, read = run_scan(table, table.scan("k", "_partition_id", "_part_offset", where=by_id))
    assert rows[:2] == [(2, "2", 0), (6, "2", 1)]
    assert read.parts_read == 1


def test_counting_reads_nothing() -> None:
    table = numbers()
    scan = nodes.Scan(table.table, (), ())
    context = table.context()
    rows = rows_of(nodes.Aggregate(scan, (), (("n", aggregate("count")),)), context)
    assert rows == [(10_000,)]
    assert (context.statistics.rows_read, context.statistics.bytes_read) == (0, 0)


def test_other_columns_are_read_only_where_a_row_is_kept() -> None:
    table = numbers(100_000, 50_000)
    _, some = run_scan(table, table.scan("s", where=call("equals", V, const(3, INT64))))
    _, none = run_scan(
        table, table.scan("s", where=call("equals", call("plus", V, V), const(3, INT64)))
    )
    assert none.bytes_read < some.bytes_read / 2


def test_virtual_offsets_count_from_the_start_of_the_part() -> None:
    table = numbers()
    where = call("greaterOrEquals", K, const(8999, UINT64))
    rows, _ = run_scan(table, table.scan("k", "_part_offset", where=where))
    assert rows[0] == (8999, 8999)
    assert rows[-1] == (9999, 9999)


def test_inline_parts_and_many_small_parts_are_read_together() -> None:
    table = stored({"k": UINT64, "v": INT64}, order_by=["k"])
    for block in range(50):
        table.insert({"k": [block, block + 100], "v": [1, 2]}, inline_bytes_max=1 << 20)
    context = table.context()
    from olapdb.execute import run_node

    batches = list(run_node(table.scan(), context))
    assert [b.num_rows for b in batches] == [100]


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (7_000, [2000, 2000, 2000, 1000]),
        (19_000, [2000, 4000, 6000, 6000, 1000]),
        (60_000, [2000, 4000, 8000, 8000, 8000, 8000, 8000, 8000, 6000]),
    ],
)
def test_tasks_grow_where_there_are_many_rows(
    monkeypatch: pytest.MonkeyPatch, rows: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(tuning, "TASK_ROWS", 2000)
    monkeypatch.setattr(tuning, "LARGE_TASK_ROWS", 8000)
    monkeypatch.setattr(tuning, "TASKS_PER_THREAD_MIN", 3)
    monkeypatch.setattr(tuning, "JOINED_TASK_ROWS_MAX", 0)
    read: list[int] = []

    def counted(task: part_scan.Task, *rest: object) -> pa.RecordBatch:
        read.append(sum(piece.rows for piece in task))
        return part_scan.read_task(task, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "read_task", counted)
    table = numbers(rows)
    found, _ = run_scan(table, table.scan("k", "v"), max_threads=1)
    assert found == [(n, n % 7) for n in range(rows)]
    assert read == sizes


def test_bounds_of_row_groups_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second query with another constant compares the bounds that the first one collected."""
    table = numbers(10_000, 1000)
    asked: list[str] = []
    bounds_in_groups = PartReader.bounds_in_groups

    def counted(reader: PartReader, name: str) -> object:
        asked.append(name)
        return bounds_in_groups(reader, name)

    monkeypatch.setattr(PartReader, "bounds_in_groups", counted)
    for low, calls in ((9_000, 1), (5_000, 0), (1_000, 0)):
        asked.clear()
        where = call("greaterOrEquals", K, const(low, UINT64))
        found, _ = run_scan(table, table.scan("k", where=where))
        assert found == [(n,) for n in range(low, 10_000)]
        assert len(asked) == calls


def test_tasks_of_wide_rows_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "TASK_ROWS", 2000)
    monkeypatch.setattr(tuning, "LARGE_TASK_BYTES", 64_000)
    table = numbers(60_000)
    of_numbers, of_texts = (
        [
            sum(piece.rows for piece in task)
            for task in scan.scan_tasks(table.scan(*names), table.context(max_threads=1))
        ]
        for names in (("k", "v"), ("k", "v", "s"))
    )
    assert max(of_numbers) == 4000
    assert max(of_texts) == 1000  # a row group: TASK_ROWS would be more than LARGE_TASK_BYTES


def test_tasks_end_where_a_window_of_the_column_cache_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_scan, "window_groups", lambda rows: 4)
    monkeypatch.setattr(tuning, "JOINED_TASK_ROWS_MAX", 0)
    table = numbers(10_000, 1000)
    tasks = list(scan.scan_tasks(table.scan("k"), table.context(max_threads=1)))
    assert [sum(piece.rows for piece in task) for task in tasks] == [4000, 4000, 2000]


def test_columns_that_are_read_for_few_rows_make_tasks_little_smaller() -> None:
    sizes = {"k": 8} | {f"late{at}": 8 for at in range(tuning.LATE_TASK_FACTOR)}
    assert part_scan.bytes_of_row(sizes, ["k"]) == 16
    assert part_scan.bytes_of_row(sizes, sizes) == sum(sizes.values())


@pytest.mark.parametrize(
    "kept", [[0], [5], [999, 1000], [3, 1500, 2500, 7001, 7002, 9999], range(0, 10_000, 999)]
)
def test_rows_of_a_task_are_read_from_the_row_groups_that_have_them(kept: list[int]) -> None:
    table = numbers()
    context = table.context(max_threads=1)
    node = table.scan("k", "s")
    (task,) = scan.scan_tasks(node, context)
    read = part_scan.read_rows(
        task, np.array(kept, np.int64), scan.scan_sources(node), node.table, context
    )
    assert read.to_pydict() == {"k": list(kept), "s": [f"s{row}" for row in kept]}
    assert context.statistics.rows_read == 0  # the caller counts them


def test_a_block_stands_for_its_table_and_parts_can_be_chosen() -> None:
    table = numbers(100, 10)
    context = table.context()
    context.blocks = {
        "t-id": pa.table({"k": pa.array([7, 8], pa.uint64()), "v": [1, 2], "s": ["a", "b"]})
    }
    scan = table.scan("s", where=call("greater", K, const(7, UINT64)))
    assert rows_of(scan, context) == [("b",)]
    table.insert({"k": [500], "v": [0], "s": ["new"]})
    chosen = table.context()
    chosen.parts = {"t-id": table.held[1:]}
    assert rows_of(table.scan("s"), chosen) == [("new",)]


def test_rows_read_are_limited() -> None:
    table = numbers()
    with pytest.raises(TooManyRows):
        run_scan(table, table.scan("k"), max_rows_to_read=5000)


def test_explain_shows_what_each_index_leaves() -> None:
    table = by_month()
    where = call(
        "and",
        call("equals", D, const(datetime.date(2013, 3, 15), DATE)),
        call("less", K, const(50, UINT64)),
    )
    scan = table.scan("v", where=where)
    lines = [
        line.strip() for line in explain_indexes(nodes.Plan(scan, (("v", "v"),)), table.context())
    ]
    assert {"Min-Max", "Partition", "PrimaryKey"} <= set(lines)
    assert lines[lines.index("Min-Max") + 3] == "Parts: 1/12"
    assert "Keys: toYYYYMM(d)" in lines
    assert any(line.startswith("Ranges:") for line in lines)


def test_texts_that_no_one_has_read_come_in_small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first read keeps no texts: the memory of a task is used again for the next one."""
    monkeypatch.setattr(tuning, "TASK_ROWS", 1_000)
    monkeypatch.setattr(tuning, "UNREAD_TEXT_BYTES", 100_000)
    table = stored({"k": UINT64, "t": STRING}, order_by=["k"], granularity=1_000)
    table.insert({"k": range(10_000), "t": [f"{n:040}" for n in range(10_000)]})
    node, context = table.scan("t"), table.context(max_threads=1)

    def task_rows(of: nodes.Scan) -> list[int]:
        tasks = scan.scan_tasks(of, context, in_chain=True)
        return [sum(piece.rows for piece in task) for task in tasks]

    is_written = task_rows(node)
    assert max(is_written) > 2_000  # a writer leaves what it wrote in the cache
    table.store.cache.columns.forget()
    assert max(task_rows(node)) == 2_000
    assert max(task_rows(table.scan("k"))) > 2_000
    assert rows_of(node, context)[-1] == (f"{9_999:040}",)
    assert task_rows(node) == is_written


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12),
    st.sampled_from([4, 16, 40]),
    st.sampled_from([0, 8, 100]),
    st.sampled_from([0, 5, 30]),
    st.booleans(),
)
def test_pieces_of_a_block_are_its_rows_in_order(
    sizes: list[int], batch_rows: int, block_rows: int, joined_min: int, coded: bool
) -> None:
    """Chunks may be empty, and each may have a dictionary of its own."""
    tables = []
    for number, size in enumerate(sizes):
        names = pa.array([f"name {number} {row % 3}" for row in range(size)], pa.string())
        columns = [pa.array(range(size), pa.int64()), names.dictionary_encode() if coded else names]
        tables.append(pa.table(columns, names=["k", "name"]))
    block = pa.concat_tables(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "BLOCK_BATCH_ROWS", block_rows)
        patch.setattr(tuning, "JOINED_PIECE_ROWS_MIN", joined_min)
        patch.setattr(block_pieces, "BATCH_ROWS", 16)
        pieces = list(block_pieces.block_pieces(block, batch_rows))
    assert [row for piece in pieces for row in piece.to_pylist()] == block.to_pylist()
    grows = batch_rows == 16 and block_rows > batch_rows
    rows_max = 2 * block_rows if grows else batch_rows
    assert all(0 < piece.num_rows <= rows_max for piece in pieces)
