"""A file whose row groups were encoded on several threads equals the file of pyarrow's one
thread."""

from __future__ import annotations

import errno
import io
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from olapdb.config import tuning
from olapdb.storage.checksum import checksum_of_file
from olapdb.storage.parquet.row_group_writer import OneThreadWriter, RowGroupsWriter, parquet_writer

pytestmark = pytest.mark.feature("storage")

OPTIONS: Mapping[str, object] = {
    "compression": "lz4",
    "write_statistics": True,
    "write_page_index": True,
    "write_page_checksum": True,
}
ROWS = 10_000


def columns() -> dict[str, pa.Array]:
    """Return a column of every shape that a table's columns have in a file."""
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 1 << 40, ROWS)
    few = pa.array([f"name {i}" for i in range(9)] + [""]).take(pa.array(numbers % 10))
    holes = pa.array(numbers % 3 == 0)
    words = pa.array(numbers).cast(pa.string())
    lengths = rng.integers(0, 4, ROWS)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    inner = pa.array(rng.integers(0, 100, int(lengths.sum())))
    lists = pa.ListArray.from_arrays(offsets, inner)
    return {
        "sorted": pa.array(np.arange(ROWS, dtype=np.uint64)),
        "day": pa.array((numbers % 28).astype(np.int32)).cast(pa.date32()),
        "moment": pa.array(numbers).cast(pa.timestamp("us", "UTC")),
        "few": few,
        "words": words,
        "float": pa.array(numbers / 7),
        "nan": pc.if_else(holes, pa.scalar(float("nan")), pa.array(numbers / 3)),
        "flag": pa.array(numbers % 2 == 0),
        "holes": pc.if_else(holes, pa.scalar(None, pa.string()), few),
        "nulls": pa.nulls(ROWS, pa.int64()),
        "decimal": pa.array([Decimal(int(n)) / 100 for n in numbers], pa.decimal128(38, 2)),
        "wide": pa.array([Decimal(int(n)) for n in numbers], pa.decimal256(76, 0)),
        "fixed": pa.array([int(n).to_bytes(16, "little") for n in numbers], pa.binary(16)),
        "list": lists,
        "map": pa.MapArray.from_arrays(offsets, inner.cast(pa.string()), inner),
        "tuple": pa.StructArray.from_arrays([few, lists], names=["a", "b"]),
    }


def written(
    rows: pa.Table, group_rows: int, options: Mapping[str, object], threads: int, blob: bytes = b""
) -> tuple[bytes, pq.FileMetaData]:
    """Return the file's bytes and the writer's metadata; 0 threads: pyarrow alone."""
    sink = pa.BufferOutputStream()
    writer = (
        RowGroupsWriter(sink, rows.schema, options, threads, stretch_rows=1_500)
        if threads
        else OneThreadWriter(sink, rows.schema, options)
    )
    writer.write_table(rows, group_rows)
    if blob:
        writer.add_key_value_metadata({"index": str(writer.write(blob))})
    writer.add_key_value_metadata({b"facts": "f" * 200})
    metadata = writer.close()
    file = sink.getvalue()
    if threads:
        assert writer.checksum() == checksum_of_file(pa.BufferReader(file))
    return file.to_pybytes(), metadata


@pytest.mark.parametrize("group_rows", [100, 1_000, 1_700, 20_000])
def test_the_bytes_are_those_of_one_writer(group_rows: int) -> None:
    rows = pa.table(columns())
    serial, serial_metadata = written(rows, group_rows, OPTIONS, threads=0)
    parallel, metadata = written(rows, group_rows, OPTIONS, threads=3)
    assert parallel == serial
    assert metadata.to_dict()["row_groups"] == serial_metadata.to_dict()["row_groups"]
    read = pq.read_table(pa.BufferReader(parallel), page_checksum_verification=True)
    assert pc.all(pc.equal(read["words"], rows["words"])).as_py()


@pytest.mark.parametrize("name", list(columns()))
def test_each_kind_of_column_alone(name: str) -> None:
    rows = pa.table({name: columns()[name]})
    assert written(rows, 999, OPTIONS, threads=2)[0] == written(rows, 999, OPTIONS, threads=0)[0]


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "compression_level": 5},
        {"write_statistics": False, "write_page_index": False},
        {"write_statistics": ["few"], "write_page_checksum": False},
        {"use_dictionary": False, "column_encoding": {"sorted": "DELTA_BINARY_PACKED"}},
        {"data_page_size": 512, "sorting_columns": [pq.SortingColumn(0)]},
    ],
)
def test_threads_write_the_same_bytes_under_every_option(options: dict[str, object]) -> None:
    rows = pa.table(columns())
    given = {**OPTIONS, **options}
    assert written(rows, 1_000, given, threads=2)[0] == written(rows, 1_000, given, threads=0)[0]


def test_bytes_between_pages_and_page_indexes() -> None:
    """Bytes between pages and footer, where skip indexes lie, survive."""
    rows = pa.table({"k": columns()["sorted"], "s": columns()["few"]})
    serial = written(rows, 700, OPTIONS, threads=0, blob=b"skip index" * 99)
    assert written(rows, 700, OPTIONS, threads=2, blob=b"skip index" * 99)[0] == serial[0]


def test_small_tables_are_written_on_one_thread() -> None:
    rows = pa.table({"k": np.arange(tuning.STRETCH_ROWS + 1)})
    for count, kind in (
        (tuning.STRETCH_ROWS, OneThreadWriter),
        (tuning.STRETCH_ROWS + 1, RowGroupsWriter),
    ):
        sink = pa.BufferOutputStream()
        with parquet_writer(
            sink, rows.schema, OPTIONS, rows=count, row_group_size=65_536, threads=4
        ) as writer:
            assert type(writer) is kind
            writer.write_table(rows.slice(0, count), 65_536)
            assert writer.close().num_rows == count


def test_a_footer_larger_than_the_memory_that_was_asked_for() -> None:
    """Each row is a row group, whose metadata are larger than its values."""
    names = [f"{name}{at}{'_' * 200}" for at in range(8) for name in "abcd"]
    rows = pa.table({name: np.arange(900) for name in names})
    assert written(rows, 1, OPTIONS, threads=2)[0] == written(rows, 1, OPTIONS, threads=0)[0]


class FullDisk(io.RawIOBase):
    def __init__(self, limit: int) -> None:
        self.left = limit

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.left -= len(data)
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)


@pytest.mark.parametrize("limit", [0, 4, 10_000, 90_000])
def test_a_full_disk_is_what_is_raised(limit: int) -> None:
    rows = pa.table(columns())
    sink = pa.PythonFile(FullDisk(limit), "w")
    writer = RowGroupsWriter(sink, rows.schema, OPTIONS, 2, stretch_rows=1_000)

    def write() -> None:
        writer.write_table(rows, 500)
        writer.close()

    with pytest.raises(OSError, match="No space left"):
        write()


def test_what_cannot_be_encoded_is_raised_and_nothing_hangs() -> None:
    rows = pa.table({"k": np.arange(ROWS)})
    other = pa.schema([("k", pa.string())])
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        RowGroupsWriter(pa.BufferOutputStream(), other, OPTIONS, 2, 1_000).write_table(rows, 500)
