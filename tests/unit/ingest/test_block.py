"""Input data made into blocks: column order, defaults, casts, NULL, block sizes, error
positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    CannotConvertType,
    CannotInsertNull,
    CannotParse,
    DataError,
    DuplicateColumn,
    Error,
    IllegalColumn,
    NoSuchColumn,
    NumberOfColumnsDoesntMatch,
    TooManyParts,
)
from olapdb.functions.base import Environment
from olapdb.ingest.block import InsertedData, make_blocks
from olapdb.model.schema import Table
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("insert")

TABLE = """
    CREATE TABLE t (
        id UInt32, name String DEFAULT concat('n', toString(id)), day Date DEFAULT '2024-01-02',
        twice UInt64 MATERIALIZED id * 2, note Nullable(String), at DateTime
    ) ENGINE = MergeTree ORDER BY id
"""


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute(TABLE)
        yield opened


def blocks(
    connection: Connection, data: Any, settings: dict[str, object] | None = None, **options: Any
) -> list[pa.Table]:
    snapshot = connection.database.services.catalog.snapshot()
    table = snapshot.find("default", "t")
    assert isinstance(table, Table)
    return list(
        make_blocks(
            table,
            InsertedData(data, **options),
            snapshot=snapshot,
            environment=Environment(),
            settings=settings,
        )
    )


def test_missing_columns_take_their_defaults(connection: Connection) -> None:
    block = blocks(connection, pa.table({"id": [3, 4], "name": ["x", "y"]}))[0]
    assert block.column_names == ["id", "name", "day", "twice", "note", "at"]
    assert block.column("id").type == pa.uint32()
    assert block.column("twice").to_pylist() == [6, 8]
    assert [str(d) for d in block.column("day").to_pylist()] == ["2024-01-02"] * 2
    assert block.column("note").to_pylist() == [None, None]
    assert blocks(connection, pa.table({"id": [7]}))[0].column("name").to_pylist() == ["n7"]


def test_null_is_an_error_for_arrow_and_the_default_for_sql(connection: Connection) -> None:
    data = pa.table({"id": [1, 2], "name": ["a", None]})
    with pytest.raises(CannotInsertNull, match=r"Column name of default\.t, row 2") as caught:
        blocks(connection, data)
    assert caught.value.row == 1
    filled = blocks(connection, data, null_as_default=True)[0]
    assert filled.column("name").to_pylist() == ["a", "n2"]


def test_columns_by_position(connection: Connection) -> None:
    data = pa.table({"a": ["x"], "b": [5]})
    block = blocks(connection, data, columns=["name", "id"])[0]
    assert (block.column("id").to_pylist(), block.column("name").to_pylist()) == ([5], ["x"])
    with pytest.raises(NumberOfColumnsDoesntMatch):
        blocks(connection, data, columns=["name"])


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        ({"nope": [1]}, NoSuchColumn, "It has id"),
        ({"twice": [1]}, IllegalColumn, "computed"),
        ({"id": ["1", "x2"]}, DataError, "Column id of default.t, row 2"),
        ({"id": [1], "day": ["tomorrow"]}, DataError, "Column day of default.t, row 1"),
    ],
)
def test_what_does_not_fit(
    connection: Connection, data: dict[str, list[Any]], error: type[Error], says: str
) -> None:
    with pytest.raises(error) as caught:
        blocks(connection, pa.table(data))
    assert says in str(caught.value)


def test_a_column_twice(connection: Connection) -> None:
    with pytest.raises(DuplicateColumn):
        blocks(connection, pa.table({"a": [1], "b": [2]}), columns=["id", "id"])


def test_dates_out_of_range_are_errors(connection: Connection) -> None:
    days = pa.array([0, 70_000], pa.date32())
    with pytest.raises(CannotConvertType, match="row 2") as caught:
        blocks(connection, pa.table({"id": [1, 2], "day": days}))
    assert caught.value.row == 1
    times = pa.array([1 << 33], pa.timestamp("s"))
    with pytest.raises(CannotConvertType, match="Column at"):
        blocks(connection, pa.table({"id": [1], "at": times}))


def test_the_row_counts_through_blocks(connection: Connection) -> None:
    data = pa.table({"id": ["1", "2", "3", "x", "5"]})
    with pytest.raises(CannotParse, match="row 4"):
        blocks(connection, data, {"max_insert_block_size": 2})


@pytest.mark.parametrize(
    ("pieces", "settings", "sizes"),
    [
        ([5], {"max_insert_block_size": 2}, [2, 2, 1]),
        ([1, 1, 1, 1], {"min_insert_block_size_rows": 2}, [2, 2]),
        ([3, 3, 3, 1], {"min_insert_block_size_rows": 5}, [6, 4]),
        ([1, 1], {"min_insert_block_size_rows": 0, "min_insert_block_size_bytes": 0}, [1, 1]),
        ([2, 9], {"max_insert_block_size": 4, "min_insert_block_size_rows": 3}, [4, 4, 3]),
        ([0, 0], {}, []),
    ],
)
def test_cutting_and_joining(
    connection: Connection, pieces: list[int], settings: dict[str, object], sizes: list[int]
) -> None:
    schema = pa.schema([("id", pa.int64())])
    batches = [pa.record_batch([pa.array(range(n))], schema=schema) for n in pieces]
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    made = blocks(connection, reader, settings)
    assert [b.num_rows for b in made] == sizes


def test_foreign_arrow_types(connection: Connection) -> None:
    data = pa.table(
        {
            "id": pa.array([1, 2], pa.int8()),
            "name": pa.array(["a", "b"]).dictionary_encode(),
            "note": pa.array(["x", None], pa.large_string()),
            "at": pa.array([1_700_000_000_000, 5_000], pa.timestamp("ms")),
        }
    )
    block = blocks(connection, data)[0]
    assert block.column("name").to_pylist() == ["a", "b"]
    assert block.column("note").to_pylist() == ["x", None]
    assert [v.timestamp() for v in block.column("at").to_pylist()] == [1_700_000_000, 5]


def test_too_many_partitions_in_a_block_and_too_many_parts() -> None:
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE p (v UInt64) ENGINE = MergeTree PARTITION BY v ORDER BY v"
            " SETTINGS parts_to_delay_insert = 4, parts_to_throw_insert = 5"
        )
        with pytest.raises(TooManyParts, match="partitions"):
            connection.execute("INSERT INTO p SELECT number FROM numbers(101)")
        assert rows(connection, "SELECT count() FROM p") == [(0,)]
        for _ in range(5):
            connection.execute("INSERT INTO p VALUES (1)")
        with pytest.raises(TooManyParts, match="OPTIMIZE"):
            connection.execute("INSERT INTO p VALUES (1)")
        connection.execute("INSERT INTO p VALUES (2)")
        connection.execute("OPTIMIZE TABLE p FINAL")
        connection.execute("INSERT INTO p VALUES (1)")
