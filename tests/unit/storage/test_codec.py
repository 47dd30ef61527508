"""ClickHouse's CODEC translated to Parquet."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olapdb.errors import BadArguments, IllegalCodecParameter, UnknownCodec
from olapdb.functions import parse_type
from olapdb.model.part import NewBlock
from olapdb.model.schema import Column, Engine, Table
from olapdb.storage.codec import column_codec
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.store import MemoryStore
from olapdb.storage.writer import write_part

pytestmark = pytest.mark.feature("storage")


def table_with(**codecs: tuple[str, str]) -> Table:
    columns = tuple(
        Column(i, name, parse_type(type_name), codec=codec)
        for i, (name, (type_name, codec)) in enumerate(codecs.items(), start=1)
    )
    return Table("t", "default", "t", Engine("MergeTree"), columns)


def test_codecs_reach_the_file() -> None:
    table = table_with(
        a=("UInt64", ""),
        b=("UInt64", "CODEC(Delta, ZSTD(3))"),
        c=("Float64", "Gorilla, NONE"),
        d=("String", "ZSTD"),
        e=("Array(String)", "CODEC(ZSTD(9))"),
    )
    rows = pa.table(
        {
            "a": pa.array([1], pa.uint64()),
            "b": pa.array([1], pa.uint64()),
            "c": [1.0],
            "d": ["x"],
            "e": [["y"]],
        }
    )
    store = MemoryStore()
    part = write_part(store, table, rows, PartPlan("all", (), NewBlock("t", 0)), lease_id="l").part
    group = pq.ParquetFile(store.open_input(part.path)).metadata.row_group(0)
    chunks = [group.column(i) for i in range(5)]
    assert [c.compression for c in chunks] == ["LZ4", "ZSTD", "UNCOMPRESSED", "ZSTD", "ZSTD"]
    assert "DELTA_BINARY_PACKED" in chunks[1].encodings
    assert "BYTE_STREAM_SPLIT" in chunks[2].encodings
    assert "RLE_DICTIONARY" in chunks[3].encodings
    assert "RLE_DICTIONARY" not in chunks[0].encodings


def test_numbers_that_lie_near_each_other_are_written_as_differences() -> None:
    """In parts of many rows, without a CODEC: hashes and columns with a CODEC stay as they are."""
    count = 5_000
    made = np.random.default_rng(1)
    table = table_with(
        near=("UInt64", ""),
        small=("Nullable(UInt8)", ""),
        price=("Decimal(12, 2)", ""),
        moment=("DateTime", ""),
        day=("Date", ""),
        hashed=("UInt64", ""),
        hashed32=("UInt32", ""),
        plain=("UInt64", "LZ4"),
        nothing=("Nullable(Int32)", ""),
    )
    near = made.integers(1 << 40, (1 << 40) + 9_000, count).astype(np.uint64)
    seconds = pa.array(made.integers(0, 1 << 20, count))
    rows = pa.table(
        {
            "near": near,
            "small": pa.array(near % 7, pa.uint8(), mask=near % 3 == 0),
            "price": pa.array([Decimal(int(n) % 900) / 100 for n in near], pa.decimal128(12, 2)),
            "moment": seconds.cast(table.columns[3].type.arrow),
            "day": seconds.cast(pa.int32()).cast(pa.date32()),
            "hashed": made.integers(0, 1 << 64, count, np.uint64),
            "hashed32": made.integers(0, 1 << 32, count, np.uint32),
            "plain": near,
            "nothing": pa.nulls(count, pa.int32()),
        }
    )

    def encoded(rows: pa.Table) -> set[str]:
        store = MemoryStore()
        plan = PartPlan("all", (), NewBlock("t", 0))
        part = write_part(store, table, rows, plan, lease_id="l").part
        file = pq.ParquetFile(store.open_input(part.path))
        read = file.read()
        assert all(read.column(n).cast(rows.column(n).type).equals(rows.column(n)) for n in NAMES)
        group = file.metadata.row_group(0)
        chunks = [group.column(at) for at in range(len(table.columns))]
        return {c.path_in_schema for c in chunks if "DELTA_BINARY_PACKED" in c.encodings}

    assert encoded(rows) == {"near", "small", "price", "moment", "day"}
    assert encoded(rows.slice(0, 100)) == set()


NAMES = ("near", "small", "hashed", "hashed32", "plain", "nothing", "day", "moment")


def test_what_is_no_codec_is_refused() -> None:
    for text, error in (
        ("Deflate", UnknownCodec),
        ("ZSTD(40)", IllegalCodecParameter),
        ("LZ4 ZSTD", BadArguments),
    ):
        table = table_with(a=("UInt64", text))
        with pytest.raises(error):
            column_codec(table.columns[0])
