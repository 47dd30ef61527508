"""Operators on small hand-made plans, for several batch sizes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.stages import checked
from olapdb.config import tuning
from olapdb.errors import (
    IncorrectResultOfScalarSubquery,
    InternalError,
    MemoryLimitExceeded,
    QueryWasCancelled,
    TimeoutExceeded,
    TooManyRows,
)
from olapdb.execute import ExecutionContext, run, run_node
from olapdb.plan import nodes
from olapdb.plan.expressions import InSubquery, ScalarSubquery
from olapdb.types import FLOAT64, INT64, STRING, UINT8, UINT64, Array, Nullable
from tests.unit.execute.build import aggregate, call, col, const, rows_of, values

pytestmark = pytest.mark.feature("select")

X, K = col("x", INT64), col("k", STRING)
ROWS = values({"k": (STRING, ["a", "b", "a", "c", "b", "a"]), "x": (INT64, [1, 2, 3, 4, 5, 6])})


def test_filter_project_numbers() -> None:
    numbers = nodes.Numbers("n", UINT64, 3, 10, 2)
    assert rows_of(numbers, max_block_size=4)[-1] == (21,)
    small = nodes.Filter(numbers, call("less", col("n", UINT64), const(8, UINT8)))
    doubled = nodes.Project(small, (("d", call("plus", col("n", UINT64), const(1, UINT8))),))
    assert rows_of(doubled) == [(4,), (6,), (8,)]


def test_endless_numbers_stop_at_the_limit() -> None:
    endless = nodes.Numbers("n", UINT64, 0, None)
    assert len(rows_of(nodes.Limit(endless, 200_000))) == 200_000


def test_a_plan_without_columns_has_rows() -> None:
    one = nodes.Values((), pa.table({"-": [1]}).select([]))
    project = nodes.Project(one, (("one", const(1, UINT8)),))
    assert rows_of(project) == [(1,)]
    count = nodes.Aggregate(one, (), (("n", aggregate("count")),))
    assert rows_of(count) == [(1,)]


@pytest.mark.parametrize("batch_rows", [1, 2, 4, 100])
def test_groups_do_not_depend_on_how_rows_are_batched(batch_rows: int) -> None:
    node = nodes.Aggregate(
        ROWS,
        (("k", K),),
        tuple(
            (f"a{at}", call_)
            for at, call_ in enumerate(
                (
                    aggregate("count"),
                    aggregate("sum", X),
                    aggregate("min", K),
                    aggregate("avg", X),
                    aggregate("uniqExact", X),
                    aggregate("groupArray", X),
                )
            )
        ),
    )
    assert rows_of(node, max_block_size=batch_rows) == [
        ("a", 3, 10, "a", 10 / 3, 3, [1, 3, 6]),
        ("b", 2, 7, "b", 3.5, 2, [2, 5]),
        ("c", 1, 4, "c", 4.0, 1, [4]),
    ]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 3)),
            st.sampled_from([0.5, math.nan]),
            st.integers(-5, 5),
        ),
        max_size=40,
    ),
    st.integers(1, 7),
)
def test_grouping_by_two_keys_is_pythons(
    rows: list[tuple[int | None, float, int]], batch_rows: int
) -> None:
    source = values(
        {
            "a": (Nullable(INT64), [r[0] for r in rows]),
            "b": (FLOAT64, [r[1] for r in rows]),
            "x": (INT64, [r[2] for r in rows]),
        }
    )
    node = nodes.Aggregate(
        source,
        (("a", col("a", Nullable(INT64))), ("b", col("b", FLOAT64))),
        (("n", aggregate("count")), ("s", aggregate("sum", X)), ("u", aggregate("uniqExact", X))),
    )
    expected: dict[tuple[object, str], list[int]] = {}
    for a, b, x in rows:
        expected.setdefault((a, str(b)), []).append(x)
    found = {(a, str(b)): rest for a, b, *rest in rows_of(node, max_block_size=batch_rows)}
    assert found == {k: [len(v), sum(v), len(set(v))] for k, v in expected.items()}


def test_aggregating_nothing() -> None:
    empty = values({"k": (STRING, []), "x": (INT64, [])})
    calls = (("n", aggregate("count")), ("s", aggregate("sum", X)))
    assert rows_of(nodes.Aggregate(empty, (), calls)) == [(0, 0)]
    assert rows_of(nodes.Aggregate(empty, (("k", K),), calls)) == []
    assert rows_of(nodes.Aggregate(empty, (), calls, empty_without_rows=True)) == []
    assert rows_of(nodes.Aggregate(ROWS, (("k", K),), ())) == [("a",), ("b",), ("c",)]


def test_grouping_by_an_array() -> None:
    arrays = values({"k": (Array(INT64), [[1], [], [1], [1, 2]])})
    node = nodes.Aggregate(arrays, (("k", col("k", Array(INT64))),), (("n", aggregate("count")),))
    assert rows_of(node) == [([1], 2), ([], 1), ([1, 2], 1)]


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 6), st.integers(0, 10))
def test_top_rows_are_those_of_the_full_sort(rows: list[int], batch_rows: int, limit: int) -> None:
    source = values({"x": (INT64, rows), "at": (INT64, range(len(rows)))})
    key = nodes.SortKey(X, descending=True)
    found = rows_of(
        nodes.Limit(nodes.Sort(source, (key,), limit), limit), max_block_size=batch_rows
    )
    full = sorted(((x, at) for at, x in enumerate(rows)), key=lambda r: -r[0])
    assert found == full[:limit]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@given(
    st.lists(st.one_of(st.none(), st.sampled_from([math.nan, -1.0, 0.5, 2.0, 3.0])), max_size=60)
)
def test_top_rows_over_null_and_nan(
    descending: bool, nulls_first: bool, rows: list[float | None]
) -> None:
    key = nodes.SortKey(col("f", Nullable(FLOAT64)), descending, nulls_first)
    source = values({"f": (Nullable(FLOAT64), rows), "at": (INT64, range(len(rows)))})
    many = nodes.Union((source,) * 40, source.schema)
    full = rows_of(nodes.Sort(many, (key,)), max_block_size=7)
    with patch.object(tuning, "TOP_ROWS_MIN", 1):
        top = rows_of(nodes.Sort(many, (key,), 13), max_block_size=7)
    assert [at for _, at in top] == [at for _, at in full[:13]]


@given(
    st.lists(st.integers(0, 3), max_size=25),
    st.integers(1, 5),
    st.integers(0, 6),
    st.integers(0, 5),
)
def test_limit_with_offset_and_ties(
    rows: list[int], batch_rows: int, count: int, offset: int
) -> None:
    key = nodes.SortKey(X)
    ordered = nodes.Sort(values({"x": (INT64, rows)}), (key,))
    full = [(x,) for x in sorted(rows)]
    plain = rows_of(nodes.Limit(ordered, count, offset), max_block_size=batch_rows)
    assert plain == full[offset : offset + count]
    tied = rows_of(nodes.Limit(ordered, count, offset, (key,)), max_block_size=batch_rows)
    last = full[offset : offset + count][-1:]
    rest = itertools.takewhile(lambda row: [row] == last, full[offset + count :])
    assert tied == full[offset : offset + count] + (list(rest) if count else [])


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_limit_by(batch_rows: int) -> None:
    node = nodes.LimitBy(ROWS, 1, 1, (K,))
    assert rows_of(node, max_block_size=batch_rows) == [("a", 3), ("b", 5)]


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=60), st.integers(1, 5))
def test_distinct_keeps_first_rows(rows: list[int | None], batch_rows: int) -> None:
    node = nodes.Distinct(values({"x": (Nullable(INT64), rows)}))
    assert rows_of(node, max_block_size=batch_rows) == [(x,) for x in dict.fromkeys(rows)]


def test_distinct_on_a_key_keeps_the_first_row_of_each() -> None:
    assert rows_of(nodes.Distinct(ROWS, (K,))) == [("a", 1), ("b", 2), ("c", 4)]


def test_union_renames() -> None:
    fields = (nodes.Field("k2", STRING), nodes.Field("x2", INT64))
    node = nodes.Union((ROWS, ROWS), fields)
    assert len(rows_of(node)) == 12


@pytest.mark.parametrize("distinct", [False, True])
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=15),
    st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=5),
)
def test_except_and_intersect(
    distinct: bool, left: list[int | None], right: list[int | None]
) -> None:
    sides = [values({"x": (Nullable(INT64), rows)}) for rows in (left, right)]
    for operator in ("EXCEPT", "INTERSECT"):
        node = nodes.SetDifference(
            sides[0],
            sides[1],
            operator,
            distinct,
            sides[0].schema,  # type: ignore[arg-type]
        )
        wanted, still = operator == "INTERSECT", Counter(right)
        expected = []
        for x in left:
            matched = x in right if distinct else still[x] > 0
            still[x] -= 1
            if matched == wanted:
                expected.append(x)
        if distinct:
            expected = list(dict.fromkeys(expected))
        assert rows_of(node, max_block_size=4) == [(x,) for x in expected]


def test_subqueries_run_once_before_the_plan() -> None:
    biggest = nodes.Aggregate(ROWS, (), (("m", aggregate("max", X)),))
    equal = call("equals", X, ScalarSubquery(INT64, biggest))
    assert rows_of(nodes.Filter(ROWS, equal)) == [("a", 6)]
    some = values({"y": (Nullable(INT64), [2, None, 4])})
    inside = InSubquery(UINT8, (X,), some, False)
    assert [x for _, x in rows_of(nodes.Filter(ROWS, inside))] == [2, 4]
    too_many = nodes.Filter(
        ROWS, call("equals", X, ScalarSubquery(INT64, nodes.Project(ROWS, (("x", X),))))
    )
    with pytest.raises(IncorrectResultOfScalarSubquery):
        rows_of(too_many)


def test_a_scalar_subquery_without_rows_is_null() -> None:
    none = nodes.Limit(nodes.Project(ROWS, (("x", X),)), 0)
    node = nodes.Project(ROWS, (("v", ScalarSubquery(Nullable(INT64), none)),))
    assert set(rows_of(node)) == {(None,)}


# --- limits


def test_memory_limit_names_the_operator_and_the_setting() -> None:
    big = nodes.Sort(nodes.Numbers("n", UINT64, 0, 1_000_000), (nodes.SortKey(col("n", UINT64)),))
    with pytest.raises(MemoryLimitExceeded, match=r"ORDER BY.*max_memory_usage"):
        rows_of(big, max_memory_usage=1_000_000, max_bytes_ratio_before_external_sort=0)


def test_cancelled_between_batches() -> None:
    context = ExecutionContext()
    plan = nodes.Plan(nodes.Numbers("n", UINT64, 0, None), (("n", "n"),))
    batches = run(plan, context).batches()
    next(batches)
    context.cancelled.set()
    with pytest.raises(QueryWasCancelled):
        for _ in batches:
            pass


def test_time_limit() -> None:
    ticks = itertools.count()
    context = ExecutionContext(settings={"max_execution_time": 3}, clock=lambda: float(next(ticks)))
    with pytest.raises(TimeoutExceeded, match="max_execution_time"):
        rows_of(nodes.Numbers("n", UINT64, 0, None), context)


def test_row_limit() -> None:
    with pytest.raises(TooManyRows, match="max_rows_to_read"):
        rows_of(nodes.Numbers("n", UINT64, 0, 10), max_rows_to_read=9)


def test_results_close_and_report() -> None:
    closed = Counter[str]()
    context = ExecutionContext()
    result = run(nodes.Plan(ROWS, (("x", "same"), ("k", "same"))), context)
    result.on_close(lambda: closed.update(["once"]))
    table = result.read_all()
    assert table.column_names == ["same", "same"]
    assert table.column(1).to_pylist() == ["a", "b", "a", "c", "b", "a"]
    result.close()
    assert closed == {"once": 1}


def test_a_wrong_batch_and_an_unknown_node_are_bugs() -> None:
    with pytest.raises(InternalError):
        list(checked(iter([pa.record_batch({"x": [1]})]), ROWS))
    with pytest.raises(InternalError):
        list(run_node(nodes.Node(), ExecutionContext()))
