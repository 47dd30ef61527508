"""combine and FINAL against a plain-Python full merge."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Number
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.engine.combine import combine, combine_first_rows
from olapdb.engine.layout import TableLayout
from olapdb.engine.replacing_collapsing import DroppedRows
from olapdb.engine.summing import is_zero
from olapdb.functions import parse_type
from olapdb.plan import nodes
from olapdb.types import BOOL, FLOAT64, INT8, INT64, STRING, UINT8, UINT64, Decimal, Nullable
from tests.unit.execute.build import Stored, aggregate, call, col, const, rows_of, stored

pytestmark = pytest.mark.feature("select")

SUMMING = {
    "k": INT64,
    "s": STRING,
    "a": UINT8,
    "n": Nullable(INT64),
    "f": FLOAT64,
    "d": Decimal(9, 2),
    "b": BOOL,
}
Row = tuple[int, str, int, int | None, float, Number, bool]
ROW = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["x", "y"]),
    st.sampled_from([0, 1, 200]),
    st.one_of(st.none(), st.integers(-2, 2)),
    st.sampled_from([0.0, 0.5, -0.5]),
    st.sampled_from([Number("0.00"), Number("1.25"), Number("-1.25")]),
    st.booleans(),
)


def full_merge(blocks: Sequence[Sequence[Row]]) -> list[Row]:
    groups: dict[int, list[Row]] = {}
    for row in (row for block in blocks for row in block):
        groups.setdefault(row[0], []).append(row)
    merged = []
    for k in sorted(groups):
        rows = groups[k]
        known = [r[3] for r in rows if r[3] is not None]
        total = (
            sum(r[2] for r in rows) % 256,
            sum(known) if known else None,
            sum(r[4] for r in rows),
            sum((r[5] for r in rows), Number("0.00")),
            any(r[6] for r in rows),
        )
        # The 0 of a Nullable column is a value, as in ClickHouse; its NULL is none.
        if known or any(total[at] for at in (0, 2, 3, 4)):
            merged.append((k, rows[0][1], *total))
    return merged


def summing(blocks: Sequence[Sequence[Row]], partition_by: str = "") -> Stored:
    table = stored(
        SUMMING, engine="SummingMergeTree", order_by=["k"], granularity=3, partition_by=partition_by
    )
    for block in blocks:
        if block:
            table.insert({name: [r[at] for r in block] for at, name in enumerate(SUMMING)})
    return table


@pytest.mark.parametrize("partition_by", ["", "s"])
@given(blocks=st.lists(st.lists(ROW, max_size=6), max_size=4))
def test_final_is_a_full_merge_across_partitions(
    partition_by: str, blocks: list[list[Row]]
) -> None:
    table = summing(blocks, partition_by)
    found = rows_of(table.scan(final=True), table.context())
    expected = full_merge(blocks)
    if partition_by:  # which row is first within a block depends on the split
        found, expected = [[(*r[:1], *r[2:6]) for r in rows] for rows in (found, expected)]
    assert found == expected


@given(blocks=st.lists(st.lists(ROW, max_size=6), max_size=3), low=st.integers(0, 2))
def test_final_filters_after_combining(blocks: list[list[Row]], low: int) -> None:
    table = summing(blocks)
    where = call(
        "and",
        call("greaterOrEquals", col("k", INT64), const(low, INT64)),
        call("equals", col("a", UINT8), const(1, UINT8)),
    )
    found = rows_of(table.scan("k", "a", where=where, final=True), table.context())
    assert found == [(r[0], r[2]) for r in full_merge(blocks) if r[0] >= low and r[2] == 1]


def without_nulls(rows: pa.Table) -> pa.Table:
    sums = rows.drop_columns(["s", "b"])
    return pa.table(
        {n: c.fill_null(0) for n, c in zip(sums.column_names, sums.columns, strict=True)}
    )


@given(blocks=st.lists(st.lists(ROW, min_size=1, max_size=6), min_size=1, max_size=4))
def test_merging_merged_rows_changes_nothing_more(blocks: list[list[Row]]) -> None:
    """Any merge tree gives the rows of one full merge; but a row that summed to zero and
    was dropped early cannot turn a later NULL into 0, so these two count as one here."""
    table = summing([]).table
    layout = TableLayout(table)

    def rows(block: Sequence[Row]) -> pa.Table:
        return pa.table(
            {
                c.name: pa.array([r[at] for r in block], c.type.arrow)
                for at, c in enumerate(table.columns)
            }
        )

    merged = rows(())
    for block in blocks:
        merged = combine(table, layout.sort(pa.concat_tables([merged, rows(block)])))
    once = combine(table, layout.sort(rows([r for block in blocks for r in block])))
    assert without_nulls(merged).equals(without_nulls(once))


ENGINES = (
    ("SummingMergeTree", ["v"]),
    ("CollapsingMergeTree", ["sign"]),
    ("VersionedCollapsingMergeTree", ["sign", "version"]),
)


@pytest.mark.parametrize(("engine", "arguments"), ENGINES)
@given(
    pieces=st.lists(
        st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([-1, 1])), min_size=1, max_size=5),
        min_size=1,
        max_size=5,
    )
)
def test_the_first_rows_of_a_key_may_be_combined_before_the_others(
    engine: str, arguments: list[str], pieces: list[list[tuple[int, int]]]
) -> None:
    columns = {"k": UINT64, "v": INT64, "sign": INT8, "version": UINT8, "at": INT64}
    table = stored(columns, engine=engine, engine_arguments=arguments, order_by=["k"]).table
    layout = TableLayout(table)
    rows = [(1, v, sign, 1, at) for at, (v, sign) in enumerate(chain.from_iterable(pieces))]
    whole = pa.table(
        {
            c.name: pa.array([r[at] for r in rows], c.type.arrow)
            for at, c in enumerate(table.columns)
        }
    )
    first, dropped, start = whole.slice(0, 0), DroppedRows(), 0
    for piece in pieces:
        if first.num_rows:
            first, dropped = combine_first_rows(table, first, layout, dropped)
        first = pa.concat_tables([first, whole.slice(start, len(piece))]).combine_chunks()
        start += len(piece)
    at_last = combine(table, first, layout, dropped=dropped)
    assert at_last.equals(combine(table, whole, layout))


def test_named_columns_alone_are_summed_and_decide() -> None:
    table = stored(
        {"k": INT64, "a": INT64, "c": INT64},
        engine="SummingMergeTree",
        engine_arguments=["a"],
        order_by=["k"],
    )
    table.insert({"k": [1, 1, 2, 2], "a": [1, 2, 1, -1], "c": [7, 8, 9, 9]})
    assert rows_of(table.scan(final=True), table.context()) == [(1, 3, 7)]


def test_states_are_merged() -> None:
    types = {
        "k": INT64,
        "u": parse_type("AggregateFunction(uniqExact, Int64)"),
        "m": parse_type("SimpleAggregateFunction(max, Int64)"),
        "t": parse_type("SimpleAggregateFunction(sum, UInt64)"),
    }
    table = stored(types, engine="AggregatingMergeTree", order_by=["k"])
    for block in ([(1, 5), (1, 6), (2, 9)], [(1, 6), (2, 1)]):
        source = stored({"k": INT64, "x": INT64})
        source.insert({"k": [r[0] for r in block], "x": [r[1] for r in block]})
        x = col("x", INT64)
        states = nodes.Aggregate(
            source.scan(),
            (("k", col("k", INT64)),),
            (
                ("u", aggregate("uniqExactState", x)),
                ("m", aggregate("max", x)),
                ("t", aggregate("count")),
            ),
        )
        from olapdb.execute import run

        plan = nodes.Plan(states, tuple((n, n) for n in types))
        table.insert(run(plan, source.context()).read_all().cast(_schema(table)))
    merged = nodes.Aggregate(
        table.scan(final=True),
        (("k", col("k", INT64)), ("m", col("m", INT64)), ("t", col("t", UINT64))),
        (("u", aggregate("uniqExactMerge", col("u", types["u"]))), ("n", aggregate("count"))),
    )
    assert rows_of(merged, table.context()) == [(1, 6, 3, 2, 1), (2, 9, 2, 2, 1)]


def test_counting_final_rows_without_a_sorting_key() -> None:
    table = stored(
        {"v": parse_type("SimpleAggregateFunction(sum, UInt64)")}, engine="AggregatingMergeTree"
    )
    table.insert({"v": [1, 2, 3]})
    scan = nodes.Scan(table.table, (), (), final=True)
    node = nodes.Aggregate(scan, (), (("n", aggregate("count")),))
    assert rows_of(node, table.context()) == [(1,)]
    assert rows_of(table.scan(final=True), table.context()) == [(6,)]


def _schema(table: Stored) -> pa.Schema:
    return pa.schema([(c.name, c.type.arrow) for c in table.table.columns])


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64(), pa.float64(), pa.bool_()])
@pytest.mark.parametrize("values", [[], [0], [1, 0, 2], [0, None, 1], [None]])
def test_sums_of_zero(kind: pa.DataType, values: list[int | None]) -> None:
    """Integers without NULL are compared in numpy, everything else in Arrow: one answer."""
    typed = [None if v is None else v != 0 if pa.types.is_boolean(kind) else v for v in values]
    column = pa.concat_arrays([pa.array(typed[:1], kind), pa.array(typed[1:], kind)])
    assert is_zero(column).tolist() == [not value for value in values]
    assert is_zero(
        pa.array([0, *typed] if kind != pa.bool_() else [False, *typed], kind)[1:]
    ).tolist() == [not value for value in values]
