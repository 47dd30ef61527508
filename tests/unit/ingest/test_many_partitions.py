"""A block is sorted and combined as a whole before it is split, with the result of doing so by
partition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.config import tuning

pytestmark = pytest.mark.feature("insert", "changes")

ENGINES = {
    "MergeTree": "p UInt8, k Int32, v Int64, s Int8, n UInt8",
    "SummingMergeTree": "p UInt8, k Int32, v Int64, s Int8, n UInt8",
    "ReplacingMergeTree(n)": "p UInt8, k Int32, v Int64, s Int8, n UInt8",
    "CollapsingMergeTree(s)": "p UInt8, k Int32, v Int64, s Int8, n UInt8",
    "VersionedCollapsingMergeTree(s, n)": "p UInt8, k Int32, v Int64, s Int8, n UInt8",
}
KEYS = ("(p, k)", "(k, p)", "k", "(k, p % 2)", "(toInt32(p), k)")
ROWS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(-3, 3),
        st.integers(-2, 2),
        st.sampled_from((-1, 1)),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=60,
)


def parts_of(engine: str, key: str, rows: list[tuple[int, ...]]) -> list[tuple[object, ...]]:
    """Return each partition's id, bounds and rows in the order of its part, read without FINAL."""
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            f"CREATE TABLE t ({ENGINES[engine]}) ENGINE = {engine} PARTITION BY p ORDER BY {key}"
        )
        values = ", ".join(map(str, rows))
        connection.execute(f"INSERT INTO t VALUES {values}")
        snapshot = connection.database.services.catalog.snapshot()
        table = snapshot.find("default", "t")
        assert table is not None
        ids = [part.partition_id for part in snapshot.parts(table.id) if part.rows]
        bounds = [sorted(part.bounds.items()) for part in snapshot.parts(table.id) if part.rows]
        found = [
            tuple(connection.execute(f"SELECT * FROM t WHERE p = {id_}").fetchall()) for id_ in ids
        ]
        return [*zip(ids, bounds, found, strict=True)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("key", KEYS)
@given(rows=ROWS)
@settings(max_examples=8)
def test_sorted_as_a_whole_or_by_partition(
    engine: str, key: str, rows: list[tuple[int, ...]]
) -> None:
    whole = parts_of(engine, key, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "SORTED_WHOLE_ROWS_MAX", 0)
        assert parts_of(engine, key, rows) == whole
