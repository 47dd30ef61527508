"""Values of each number of bits, packed in pages, are decoded by kernels as Arrow decodes them."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olapdb.native.library import library
from olapdb.storage.page_decoder import PageSource, column_pages, decode_pages
from olapdb.storage.part_footer import PartFooter, file_columns

pytestmark = [
    pytest.mark.feature("storage"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

SIZES = (1, 2, 8, 9, 33, 40, 129, 1_000)
"""Rows of a page: whole blocks of 128 differences and parts of one, whole eights and parts of one."""


def assert_decoded(columns: dict[str, pa.Array], **options: object) -> None:
    """Write columns as a Parquet file, and compare what the kernels read with what was written."""
    fields = [
        pa.field(
            name,
            array.type,
            nullable=False,
            metadata={"PARQUET:field_id": str(at), "olapdb.type": ""},
        )
        for at, (name, array) in enumerate(columns.items(), 1)
    ]
    sink = io.BytesIO()
    rows = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(rows, sink, write_page_checksum=True, compression="lz4", **options)
    file = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    footer = PartFooter(file.metadata, file_columns(file.schema_arrow))
    source = PageSource.of(pa.BufferReader(sink.getvalue()))
    assert source is not None
    for column in footer.columns.values():
        pages = column_pages(footer, column)
        assert pages is not None
        values = decode_pages(source, pages, range(footer.metadata.num_row_groups))
        assert values is not None
        assert values.equals(columns[column.name]), column.name


@pytest.mark.parametrize("rows", SIZES)
def test_differences_of_each_width(rows: int) -> None:
    """Steps of one sign and of both: the least step of a block is taken from the others."""
    random = np.random.default_rng(rows)
    columns = {}
    for bits in range(64):
        steps = random.integers(0, 1 << bits, rows, dtype=np.uint64)
        for name, low in (("up", 0), ("both", 1 << bits >> 1)):
            values = np.cumsum(steps - np.uint64(low), dtype=np.uint64)
            columns[f"{name}{bits}"] = pa.array(values.view(np.int64))
            if bits < 32:
                narrow = values.astype(np.uint32)
                columns[f"{name}{bits} of 32"] = pa.array(narrow.view(np.int32))
                columns[f"{name}{bits} of 16"] = pa.array(narrow.astype(np.uint16))
    encodings = dict.fromkeys(columns, "DELTA_BINARY_PACKED")
    assert_decoded(columns, use_dictionary=False, column_encoding=encodings)


@pytest.mark.parametrize("bits", range(1, 15))
def test_codes_of_each_width(bits: int) -> None:
    random = np.random.default_rng(bits)
    distinct = np.arange((1 << bits - 1) + 1, dtype=np.uint64) * np.uint64(977)
    for rows in SIZES:
        codes = np.concatenate([np.arange(len(distinct)), random.integers(0, len(distinct), rows)])
        numbers = pa.array(distinct[codes])
        assert_decoded({"number": numbers, "text": numbers.cast(pa.string())})
