"""ClickHouse's CODEC translated to Parquet."""

from __future__ import annotations

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


def test_what_is_no_codec_is_refused() -> None:
    for text, error in (
        ("Deflate", UnknownCodec),
        ("ZSTD(40)", IllegalCodecParameter),
        ("LZ4 ZSTD", BadArguments),
    ):
        table = table_with(a=("UInt64", text))
        with pytest.raises(error):
            column_codec(table.columns[0])
