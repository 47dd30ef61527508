"""Sketches of distinct values: their error, merging, and what they are of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb.config import tuning
from olapdb.storage.distinct_counts import distinct_counts, estimate, sketch

pytestmark = pytest.mark.feature("storage", "select")

ERROR_MAX = 0.25
"""Four standard deviations of 256 registers."""


@pytest.mark.parametrize("distinct", [1, 2, 25, 300, 1_000, 20_000, 400_000])
@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_the_error_is_small(distinct: int, kind: str) -> None:
    numbers = np.arange(max(distinct, 50_000)) % distinct * 7
    values = (
        pa.array(numbers) if kind == "numbers" else pa.array(numbers.astype(str).astype(object))
    )
    counted = estimate(sketch(pa.chunked_array([values])))
    assert abs(counted - distinct) <= max(ERROR_MAX * distinct, 0.5)


def test_nulls_are_no_value() -> None:
    values = pa.chunked_array([pa.array([1, None, 1, None]), pa.array([None], pa.int64())])
    assert round(estimate(sketch(values))) == 1
    assert estimate(sketch(pa.chunked_array([pa.array([None], pa.int64())]))) == 0


def test_registers_merge_as_their_rows() -> None:
    first, second = np.arange(0, 30_000), np.arange(20_000, 60_000)
    merged = np.maximum(
        sketch(pa.chunked_array([pa.array(first)])), sketch(pa.chunked_array([pa.array(second)]))
    )
    whole = sketch(pa.chunked_array([pa.array(np.arange(60_000))]))
    assert (merged == whole).all()


def test_hashes_that_raise_no_register_change_nothing() -> None:
    numbers = np.random.default_rng(5).integers(0, 1 << 40, 200_000)
    pieces = [pa.array(numbers[at : at + 1_000]) for at in range(0, len(numbers), 1_000)]
    assert (
        sketch(pa.chunked_array(pieces))
        == sketch(pa.chunked_array([pa.array(numbers[::-1].copy())]))
    ).all()


def counts(connection: Any, *columns: str) -> list[float | None]:
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = snapshot.find("default", "t")
    of = distinct_counts(services.store, snapshot)
    return [of(table, column) for column in columns]


@pytest.fixture
def connection(tmp_path) -> Any:
    with olapdb.connect(tmp_path / "warehouse") as made:
        made.execute("SYSTEM STOP MERGES")
        made.execute(
            "CREATE TABLE t (id UInt32, kind LowCardinality(String), price Nullable(Decimal(9, 2)),"
            " tags Array(String)) ENGINE = MergeTree ORDER BY id SETTINGS inline_bytes_max = 0"
        )
        yield made


def insert(connection: Any, start: int, rows: int) -> None:
    connection.execute(
        "INSERT INTO t SELECT number, toString(number % 7), if(number % 2 = 0, NULL, number % 90),"
        f" ['a'] FROM numbers({start}, {rows})"
    )


def test_parts_write_them_and_tables_merge_them(connection: Any) -> None:
    insert(connection, 0, 20_000)
    insert(connection, 20_000, 20_000)
    ids, kinds, prices, tags = counts(connection, "id", "kind", "price", "tags")
    assert ids == pytest.approx(40_000, rel=ERROR_MAX)
    assert kinds == pytest.approx(7, abs=0.5)
    assert prices == pytest.approx(45, rel=0.1)
    assert tags is None
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert counts(connection, "id", "kind") == [ids, kinds]


def test_they_survive_a_rename_and_a_reopening(tmp_path) -> None:
    with olapdb.connect(tmp_path / "warehouse") as made:
        made.execute("CREATE TABLE t (id UInt32) ENGINE = MergeTree ORDER BY id")
        made.execute("INSERT INTO t SELECT number FROM numbers(500000)")
        before = counts(made, "id")
        made.execute("ALTER TABLE t ADD COLUMN other String")
        made.execute("ALTER TABLE t RENAME COLUMN other TO another")
    with olapdb.connect(tmp_path / "warehouse") as made:
        assert counts(made, "id") == before
        assert counts(made, "another") == [None]


def test_parts_without_them_leave_the_estimate_to_bounds(connection: Any, monkeypatch) -> None:
    insert(connection, 0, 5_000)
    monkeypatch.setattr(tuning, "SKETCH_ROWS_MIN", 1 << 60)
    insert(connection, 5_000, 50_000)
    assert counts(connection, "id") == [None]


def test_rows_in_the_catalog_are_counted_too(tmp_path) -> None:
    with olapdb.connect(tmp_path / "warehouse") as made:
        made.execute("CREATE TABLE t (id UInt32) ENGINE = MergeTree ORDER BY id")
        made.execute("INSERT INTO t VALUES (1), (2), (2), (3)")
        assert counts(made, "id") == [pytest.approx(3, abs=0.1)]
