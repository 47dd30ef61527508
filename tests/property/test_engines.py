"""Engines that keep some rows of a key: FINAL equals a full merge and a plain-Python model,
whatever was merged before."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.commit.origin import CommitOrigin
from olapdb.engine.combine import combine
from olapdb.engine.layout import TableLayout
from olapdb.engine.replacing_collapsing import visible
from olapdb.errors import IncorrectData
from olapdb.maintenance.check import check_database
from olapdb.maintenance.merge_planner import merge_worthwhile
from olapdb.maintenance.merger import merge_parts
from olapdb.model.schema import Column, Engine, KeyItem, Table
from olapdb.types import INT8, INT64, STRING, UINT8, UINT64

pytestmark = pytest.mark.feature("engines")

Row = tuple[int, int, int, int, str]
"""k, v, s (a sign), d (is_deleted), x (unique for each row)"""
Blocks = Sequence[Sequence[Row]]
COLUMNS = (("k", INT64), ("v", UINT64), ("s", INT8), ("d", UINT8), ("x", STRING))
K, V, S, D, X = range(5)


# --- the model -----------------------------------------------------------------------------------


def by_key(rows: Iterable[Row], *columns: int) -> Iterable[list[Row]]:
    """Yield the rows of each key in their order, by ascending keys."""

    def key(row: Row) -> tuple[object, ...]:
        return tuple(row[c] for c in columns)

    for _, found in groupby(sorted(rows, key=key), key):
        yield list(found)


def replacing(rows: Iterable[Row], newest: Callable[[Row], int]) -> list[Row]:
    kept = []
    for found in by_key(rows, K):
        best = max(newest(row) for row in found)
        kept.append([row for row in found if newest(row) == best][-1])
    return kept


def collapsing(rows: Iterable[Row]) -> list[Row]:
    kept = []
    for found in by_key(rows, K):
        stating = [row for row in found if row[S] == 1]
        cancelling = [row for row in found if row[S] == -1]
        if len(stating) == len(cancelling) and found[-1][S] == -1:
            continue
        if len(stating) <= len(cancelling):
            kept.append(cancelling[0])
        if len(stating) >= len(cancelling):
            kept.append(stating[-1])
    return kept


def versioned(rows: Iterable[Row]) -> list[Row]:
    kept = []
    for found in by_key(rows, K, V):
        waiting: list[Row] = []
        for row in found:
            if waiting and waiting[-1][S] != row[S]:
                waiting.pop()
            else:
                waiting.append(row)
        kept += waiting
    return kept


@dataclass(frozen=True)
class Kind:
    """An engine, the rows that a merge of all rows keeps, and which of them FINAL shows."""

    engine: str
    merged: Callable[[Iterable[Row]], list[Row]]
    shown: Callable[[Row], bool] = lambda row: True

    @property
    def table(self) -> Table:
        name, _, arguments = self.engine.partition("(")
        key = ("k", "v") if name.startswith("Versioned") else ("k",)
        return Table(
            id="t",
            database="default",
            name="t",
            engine=Engine(name, tuple(a for a in arguments.rstrip(")").split(", ") if a)),
            columns=tuple(Column(i, n, t) for i, (n, t) in enumerate(COLUMNS, 1)),
            sorting_key=tuple(KeyItem(k) for k in key),
            primary_key=1,
        )

    def final(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in self.merged(rows) if self.shown(row)]


LAST = Kind("ReplacingMergeTree", lambda rows: replacing(rows, lambda row: 0))
NEWEST = Kind("ReplacingMergeTree(v)", lambda rows: replacing(rows, lambda row: row[V]))
DELETED = Kind(
    "ReplacingMergeTree(v, d)",
    lambda rows: replacing(rows, lambda row: row[V]),
    lambda row: not row[D],
)
COLLAPSING = Kind("CollapsingMergeTree(s)", collapsing, lambda row: row[S] == 1)
VERSIONED = Kind("VersionedCollapsingMergeTree(s, v)", versioned)
KINDS = (LAST, NEWEST, DELETED, COLLAPSING, VERSIONED)


# --- rows ----------------------------------------------------------------------------------------

SHAPE = st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([1, -1]), st.integers(0, 1))
CUTS = st.lists(st.lists(SHAPE, max_size=6), min_size=1, max_size=6)


def numbered(blocks: Sequence[Sequence[tuple[int, int, int, int]]]) -> list[list[Row]]:
    return [
        [(k, v, s, d, f"{b}.{r}") for r, (k, v, s, d) in enumerate(block)]
        for b, block in enumerate(blocks)
    ]


def honest(kind: Kind, blocks: Blocks) -> list[list[Row]]:
    """Return rows that follow the engine's rule, so that no merge tree changes the result.

    Each state is cancelled before the next one, by a row that equals it except for the sign."""
    if kind not in (COLLAPSING, VERSIONED):
        return [list(block) for block in blocks]
    stated: dict[object, Row] = {}
    count: dict[int, int] = defaultdict(int)

    def row(k: int, v: int, s: int, d: int, x: str) -> Row:
        key = k if kind is COLLAPSING else (k, v)
        if key in stated:
            before = stated.pop(key)
            return (k, before[V], -1, before[D], before[X])
        count[k] += 1
        stated[key] = (
            (k, v, 1, d, f"{k}.{count[k]}") if kind is COLLAPSING else (k, v, 1, v % 2, "")
        )
        return stated[key]

    return [[row(*one) for one in block] for block in blocks]


def table_of(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(c, t.arrow) for c, (_, t) in zip(columns, COLUMNS, strict=True)]
    return pa.table(arrays, names=[name for name, _ in COLUMNS])


def rows_of(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]  # type: ignore[misc]


def merge(kind: Kind, pieces: Iterable[pa.Table]) -> pa.Table:
    table = kind.table
    layout = TableLayout(table)
    return combine(table, layout.sort(pa.concat_tables(list(pieces))), layout)


# --- properties ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.engine)
@given(cut=CUTS)
def test_one_merge_is_the_model(kind: Kind, cut: list[list[tuple[int, int, int, int]]]) -> None:
    blocks = numbered(cut)
    merged = merge(kind, map(table_of, blocks))
    everything = [row for block in blocks for row in block]
    assert rows_of(merged) == kind.merged(everything)
    assert rows_of(visible(kind.table, merged)) == kind.final(everything)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.engine)
@given(cut=CUTS, draw=st.randoms(use_true_random=False))
def test_no_tree_of_merges_shows(
    kind: Kind, cut: list[list[tuple[int, int, int, int]]], draw: random.Random
) -> None:
    blocks = honest(kind, numbered(cut))
    parts = [table_of(block) for block in blocks]
    while len(parts) > 1:
        start = draw.randrange(len(parts) - 1)
        stop = draw.randint(start + 2, len(parts))
        parts[start:stop] = [merge(kind, parts[start:stop])]
    assert rows_of(merge(kind, parts)) == kind.merged(row for block in blocks for row in block)


@given(cut=CUTS)
def test_any_tree_leaves_as_many_rows_of_a_version(
    cut: list[list[tuple[int, int, int, int]]],
) -> None:
    """The order decides which unequal rows of a version cancel, but not how many."""
    blocks = numbered(cut)
    merged = table_of(())
    for block in blocks:
        merged = merge(VERSIONED, [merged, table_of(block)])
    left = [(k, v, s) for k, v, s, _, _ in rows_of(merged)]
    once = [(k, v, s) for k, v, s, _, _ in versioned(row for block in blocks for row in block)]
    assert left == once


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.engine)
@pytest.mark.parametrize("combined_first", [0, 1])
@settings(max_examples=15)
@given(cut=CUTS, draw=st.randoms(use_true_random=False))
def test_a_table_reads_the_same_before_between_and_after_merges(
    kind: Kind, combined_first: int, cut: list[list[tuple[int, int, int, int]]], draw: random.Random
) -> None:
    blocks = honest(kind, numbered(cut))
    everything = [row for block in blocks for row in block]
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
        connection.execute(f"CREATE TABLE t ({columns}) ENGINE = {kind.engine} ORDER BY k")
        for block in filter(None, blocks):
            values = ", ".join(str(row) for row in block)
            connection.execute(
                f"INSERT INTO t SETTINGS optimize_on_insert = {combined_first} VALUES {values}"
            )
        services = connection.session.engine.services
        final = "SELECT * FROM t FINAL"
        assert connection.execute(final).fetchall() == kind.final(everything)
        snapshot = services.catalog.snapshot()
        table = snapshot.find("default", "t")
        assert isinstance(table, Table)
        parts = sorted(snapshot.parts(table.id), key=lambda part: part.block_range)
        if len(parts) > 1:
            start = draw.randrange(len(parts) - 1)
            stop = draw.randint(start + 2, len(parts))
            merge_parts(CommitOrigin(services, "MERGE"), snapshot, table, parts[start:stop])
        assert connection.execute(final).fetchall() == kind.final(everything)
        connection.execute("OPTIMIZE TABLE t FINAL")
        assert connection.execute("SELECT * FROM t").fetchall() == kind.merged(everything)
        assert connection.execute(final).fetchall() == kind.final(everything)
        assert check_database(services.catalog, services.store) == []


def test_parts_of_a_log_are_joined_in_the_order_of_insertion() -> None:
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE TABLE log (n UInt32) ENGINE = Log")
        for n in range(60, 0, -1):
            connection.execute(f"INSERT INTO log VALUES ({n}), ({100 - n})")
        services = connection.session.engine.services
        table = services.catalog.snapshot().find("default", "log")
        assert isinstance(table, Table)
        while merge_worthwhile(services, table.id):
            pass
        assert len(services.catalog.snapshot().parts(table.id)) < 30
        found = connection.execute("SELECT n FROM log").fetchall()
        assert found == [(m,) for n in range(60, 0, -1) for m in (n, 100 - n)]
        assert check_database(services.catalog, services.store) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.engine)
def test_many_rows_of_few_and_of_many_keys(kind: Kind) -> None:
    draw = random.Random(7)
    for keys in (3, 5_000):
        rows: list[Row] = [
            (
                draw.randrange(keys),
                draw.randrange(4),
                draw.choice((1, -1)),
                draw.randrange(2),
                str(i),
            )
            for i in range(20_000)
        ]
        assert rows_of(merge(kind, [table_of(rows)])) == kind.merged(rows)


@pytest.mark.parametrize("kind", [DELETED, COLLAPSING, VERSIONED], ids=lambda kind: kind.engine)
def test_a_marker_that_is_none_is_an_error(kind: Kind) -> None:
    with pytest.raises(IncorrectData, match=r"default\.t is [07]"):
        merge(kind, [table_of([(1, 1, 1, 0, "a"), (1, 1, 0, 7, "b")])])
