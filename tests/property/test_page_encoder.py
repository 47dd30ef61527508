"""Files whose pages kernels encode hold what Arrow's writer would have written: the same values, bounds and row groups, for
Arrow, DuckDB and our own decoder."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olapdb.config import tuning
from olapdb.functions import parse_type
from olapdb.model.schema import Table
from olapdb.native import encoding
from olapdb.native.library import library, without_kernels
from olapdb.storage.column_statistics import table_bounds
from olapdb.storage.distinct_counts import METADATA_KEY, sketch
from olapdb.storage.parquet import page_encoder
from olapdb.storage.parquet.page_encoder import PageEncoder
from olapdb.storage.reader import PartReader
from olapdb.storage.store import LocalStore, MemoryStore, Store

from .test_page_decoder import COLUMNS, NoRows, bits_of, column_of, table_of, written

pytestmark = [
    pytest.mark.feature("storage"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]


def encoded(store: Store, table: Table, rows: pa.Table) -> str:
    """Write a part whose pages kernels encode, however few its rows are; return its path."""
    with mock.patch.object(tuning, "ENCODED_ROWS_MIN", 1):
        return written(store, table, rows).path


def rows_of(table: Table, columns: list[tuple[str, str, float]], rows: int, seed: int) -> pa.Table:
    """Return rows of (type, shape, share of NULL) columns, as slices of longer arrays."""
    arrays = [
        column_of(_not_nullable(name), shape, rows + 3, seed + at, nulls).slice(3)
        for at, (name, shape, nulls) in enumerate(columns)
    ]
    return pa.table(dict(zip((c.name for c in table.columns), arrays, strict=True)))


def statistics_of(metadata: pq.FileMetaData) -> list[tuple[object, ...]]:
    """Return what the footer says of each column of each row group, other than the encoding."""
    facts: list[tuple[object, ...]] = []
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        facts.append((row_group.num_rows, row_group.sorting_columns))
        for at in range(row_group.num_columns):
            chunk = row_group.column(at)
            found = chunk.statistics
            bounds = (found.min_raw, found.max_raw) if found.has_min_max else ()
            facts.append(
                (
                    chunk.path_in_schema,
                    chunk.physical_type,
                    chunk.compression,
                    chunk.num_values,
                    found.null_count,
                    *map(repr, bounds),
                )
            )
    return facts


@settings(max_examples=120, deadline=None)
@given(
    st.lists(COLUMNS, min_size=1, max_size=4),
    st.sampled_from([1, 2, 7, 8, 9, 127, 128, 129, 130, 161, 1000, 3000]),
    st.sampled_from([5, 64, 1000, 8192]),
    st.integers(0, 1 << 30),
)
def test_files_hold_what_arrow_would_write(
    columns: list[tuple[str, str, str, float | None]], rows: int, granule: int, seed: int
) -> None:
    typed = [
        (
            name if nulls is None or "(a " in name or "Array" in name else _nullable(name),
            shape,
            codec,
            nulls or 0.0,
        )
        for name, shape, codec, nulls in columns
    ]
    typed = [c for c in typed if not ("Delta" in c[2] and _is_no_number(c[0]))] or [
        ("UInt8", "few", "", 0.0)
    ]
    table = table_of([(name, codec) for name, _, codec, _ in typed], granule, order_by=False)
    data = rows_of(table, [(name, shape, nulls) for name, shape, _, nulls in typed], rows, seed)
    store = MemoryStore()
    by_kernels = encoded(store, table, data)
    with without_kernels():
        by_arrow = written(store, table, data).path
    ours, theirs = (
        pq.ParquetFile(store.open_input(path), page_checksum_verification=True)
        for path in (by_kernels, by_arrow)
    )
    assert statistics_of(ours.metadata) == statistics_of(theirs.metadata)
    assert ours.schema.equals(theirs.schema)
    ours_read, theirs_read = ours.read(), theirs.read()
    assert ours_read.schema.remove_metadata().equals(
        theirs_read.schema.remove_metadata(), check_metadata=True
    )
    for name in data.column_names:
        assert bits_of(ours_read.column(name)).equals(bits_of(theirs_read.column(name))), name


@settings(max_examples=80, deadline=None)
@given(
    st.lists(COLUMNS, min_size=1, max_size=4),
    st.sampled_from([1, 2, 130, 1000, 9000]),
    st.sampled_from([64, 1000, 8192]),
    st.integers(0, 1 << 30),
)
def test_bounds_and_sketches_are_those_of_the_rows(
    columns: list[tuple[str, str, str, float | None]], rows: int, granule: int, seed: int
) -> None:
    """What kernels find out while they encode is what the rows say when they are read for it."""
    typed = [
        (
            name if nulls is None or "(a " in name or "Array" in name else _nullable(name),
            shape,
            nulls,
        )
        for name, shape, _, nulls in columns
    ]
    table = table_of([(name, "") for name, _, _ in typed], granule, order_by=False)
    data = rows_of(table, [(name, shape, nulls or 0.0) for name, shape, nulls in typed], rows, seed)
    store = MemoryStore()
    with mock.patch.object(tuning, "SKETCH_ROWS_MIN", 1):
        with mock.patch.object(tuning, "ENCODED_ROWS_MIN", 1):
            part = written(store, table, data)
        with without_kernels():
            plain = written(store, table, data)
    assert part.bounds == plain.bounds == table_bounds(table, data)
    assert list(part.bounds) == list(plain.bounds)
    assert list(map(repr, part.bounds.values())) == list(map(repr, plain.bounds.values()))
    sketches, others = (
        PartReader(store, NoRows(), p, table).metadata(METADATA_KEY) for p in (part, plain)
    )
    assert sketches == others


INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("end", ["min", "max", "zero"])
def test_integers_near_each_other_are_sketched_like_all_others(kind: np.dtype, end: str) -> None:
    """The kernel hashes each distinct value once; the ends of the type and NULL are no exception."""
    limits = np.iinfo(kind)
    span = 20
    least = {"min": limits.min, "max": limits.max - span, "zero": max(limits.min, -7)}[end]
    numbers = np.random.default_rng(3).integers(0, span + 1, 4_000)
    values = (numbers.astype(object) + least).astype(kind)
    array = pa.array(values, mask=numbers % 5 == 2).slice(3)
    bytes_stored = 8 if kind.itemsize == 8 else 4
    form = np.array((bytes_stored, 1, 1, 1, 5), np.int64)
    registers = np.zeros(page_encoder.REGISTERS, np.uint8)
    room = np.zeros(1 << 20, np.uint8)
    chunk = encoding.encode_numbers(array, form, room, registers)
    assert chunk is not None
    assert chunk.nulls == array.null_count
    with without_kernels():
        assert registers.tolist() == sketch(pa.chunked_array([array])).tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, float("nan"), 1.0]),
        pa.array([-0.0, 0.0, -0.0]),
        pa.array([float("inf"), float("-inf")]),
        pa.array([None, None], pa.float64()),
        pa.array([None, float("nan")], pa.float64()),
        pa.array(["", "a" * 64, "é"]),
        pa.array(["a" * 65, "b"]),
        pa.array(["b", "a" * 5000, "c"]),
        pa.array([b"\xff", b"a"]).view(pa.string()),
    ],
    ids=str,
)
def test_bounds_that_cannot_be(values: pa.Array) -> None:
    """A NaN and long or broken texts leave a column without bounds, a NULL does not; 0 is no -0."""
    name = "Nullable(Float64)" if pa.types.is_floating(values.type) else "String"
    table = table_of([(name, "")], 2, order_by=False)
    rows = pa.table({"c1": values})
    with mock.patch.object(tuning, "ENCODED_ROWS_MIN", 1):
        part = written(MemoryStore(), table, rows)
    assert part.bounds == table_bounds(table, rows)


def _nullable(name: str) -> str:
    """Return the Nullable form of a type."""
    if name.startswith("LowCardinality("):
        return f"LowCardinality(Nullable({name[15:-1]}))"
    return f"Nullable({name})"


def _not_nullable(name: str) -> str:
    """Return a type without Nullable."""
    return name.replace("Nullable(", "", 1)[:-1] if "Nullable(" in name else name


def _is_no_number(name: str) -> bool:
    """Return whether the codec Delta is not for the type."""
    arrow = parse_type(name).arrow
    return not pa.types.is_integer(arrow) and not pa.types.is_temporal(arrow)


def test_duckdb_and_our_decoder_read_them(tmp_path: Path) -> None:
    """Numbers, times and texts in several row groups, with NULLs and without, among a column that only Arrow encodes."""
    columns = [
        ("UInt64", "ascending", 0.0),
        ("Int8", "any", 0.0),
        ("Nullable(UInt32)", "any", 0.3),
        ("Array(UInt8)", "few", 0.0),
        ("Float64", "any", 0.0),
        ("DateTime64(3)", "few", 0.0),
        ("Decimal(18, 6)", "any", 0.0),
        ("Nullable(String)", "any", 0.2),
        ("LowCardinality(String)", "few", 0.0),
        ("Nullable(Date32)", "any", 1.0),
    ]
    table = table_of([(name, "") for name, _, _ in columns], 4096, order_by=True)
    data = rows_of(table, columns, 20_000, 5)
    store = LocalStore(str(tmp_path))
    path = encoded(store, table, data)
    assert isinstance(PageEncoder.of(pa.schema([("x", pa.int8())]), _OPTIONS, 8), PageEncoder)
    part = written(store, table, data)
    known = duckdb.sql(f"SELECT * FROM '{tmp_path / part.path}'").to_arrow_table()
    with without_kernels():
        plain = written(store, table, data)
    for file in (path, plain.path):
        read = duckdb.sql(f"SELECT * FROM '{tmp_path / file}'").to_arrow_table()
        for name in data.column_names:
            assert (
                bits_of(read.column(name)).combine_chunks()
                == bits_of(known.column(name)).combine_chunks()
            ), name
    own = PartReader(store, NoRows(), part, table).read(data.column_names)
    for name in data.column_names:
        column = data.column(name).cast(own.column(name).type)
        assert bits_of(own.column(name)).combine_chunks() == bits_of(column).combine_chunks(), name


_OPTIONS = {"compression": {"x": "lz4"}, "use_dictionary": []}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 255), st.integers(1, 40), st.integers(1, 3000), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_bytes_survive_compression(pieces: list[tuple[int, int, int, bool]]) -> None:
    """Repeated patterns of all distances and lengths, and noise between them, also beyond the 64 KiB that LZ4 looks back."""
    made = np.random.default_rng(len(pieces))
    blocks = [
        made.integers(0, 256, times, np.uint8)
        if is_noise
        else np.tile(np.arange(first, first + size, dtype=np.int64).astype(np.uint8), times)
        for first, size, times, is_noise in pieces
    ]
    data = np.concatenate([np.zeros(8, np.uint8), *blocks, *blocks])
    values = pa.array(data[: len(data) // 8 * 8].view(np.int64))
    table = table_of([("Int64", "LZ4")], 1 << 17, order_by=False)
    store = MemoryStore()
    path = encoded(store, table, pa.table({"c1": values}))
    assert pq.read_table(store.open_input(path)).column("c1").combine_chunks() == values


@given(
    st.lists(
        st.text("\0aé", max_size=20).map(lambda text: "prefix of " * (len(text) % 3) + text),
        min_size=1,
    )
)
def test_ranges_of_texts_are_those_of_their_bytes(texts: list[str]) -> None:
    least, greatest = encoding.text_range(pa.array(texts))
    assert texts[least].encode() == min(text.encode() for text in texts)
    assert texts[greatest].encode() == max(text.encode() for text in texts)


def test_no_row_without_a_text_is_an_end_of_the_range() -> None:
    assert encoding.text_range(pa.array([None, "b", None, "a"])) == (3, 1)
    assert encoding.text_range(pa.array([None], pa.string())) == (-1, -1)


def test_long_texts_and_large_row_groups_are_left_to_arrow() -> None:
    table = table_of([("String", ""), ("UInt8", "")], 64, order_by=False)
    data = rows_of(table, [("String", "any", 0.0), ("UInt8", "any", 0.0)], 500, 3)
    store = MemoryStore()
    with mock.patch.object(page_encoder, "_TEXT_BYTES_MAX", 100):
        path = encoded(store, table, data)
    assert pq.read_table(store.open_input(path)).equals(
        data.cast(pq.read_schema(store.open_input(path)))
    )
    assert PageEncoder.of(pa.schema([("x", pa.int8())]), _OPTIONS, 1 << 20) is None
    with without_kernels():
        assert PageEncoder.of(pa.schema([("x", pa.int8())]), _OPTIONS, 8) is None
