"""Pages that a kernel decodes give what Arrow's reader gives, bit by bit; damaged ones are left to Arrow."""

from __future__ import annotations

import io
import os
import random
import zlib
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olapdb.errors import Error
from olapdb.functions import parse_type
from olapdb.model.part import NewBlock, Part
from olapdb.model.schema import Column, Engine, KeyItem, Table
from olapdb.native.library import library, without_kernels
from olapdb.storage.column_cache import ChunkKey
from olapdb.storage.column_chunks import neighbours
from olapdb.storage.page_decoder import PageSource, column_pages, decode_pages, runs_in_windows
from olapdb.storage.part_footer import FileColumn, PartFooter, file_columns
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.reader import PartReader
from olapdb.storage.store import LocalStore, MemoryStore, Store
from olapdb.storage.writer import write_part

pytestmark = [
    pytest.mark.feature("storage"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

KNOWN = [
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    *("Float32", "Float64", "Date", "Date32", "DateTime", "DateTime('Asia/Tokyo')"),
    *("DateTime64(0)", "DateTime64(3)", "DateTime64(6)", "DateTime64(9)"),
    *("Decimal(5, 2)", "Decimal(9, 0)", "Decimal(18, 6)", "String", "LowCardinality(String)"),
    "Enum8('a' = 1, 'b' = 2)",
]
"""Types whose pages kernels decode, Nullable or not."""
OTHERS = ["Bool", "Decimal(38, 3)", "FixedString(3)", "Array(UInt8)", "Tuple(a UInt8, b String)"]
SHAPES = ["constant", "few", "ascending", "any"]
CODECS = ["", "NONE", "LZ4", "ZSTD(1)", "Delta, LZ4"]


def numbers(shape: str, rows: int, seed: int, bits: int, signed: bool) -> np.ndarray:
    """Return integers of so many bits in a shape that the writer encodes in its own way."""
    made = np.random.default_rng(seed)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    kind = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    if shape == "ascending":
        return np.minimum(np.cumsum(made.integers(0, 3, rows)), min(high, 1 << 20)).astype(kind)
    values = made.integers(low, high, rows if shape == "any" else 5, kind, endpoint=True)
    if shape == "any":
        return values
    return values[made.integers(0, 1 if shape == "constant" else 5, rows)]


def column_of(name: str, shape: str, rows: int, seed: int, nulls: float) -> pa.Array:
    """Return values of a type, a share of them NULL."""
    arrow = parse_type(name).arrow
    is_fixed = pa.types.is_primitive(arrow) and not pa.types.is_decimal(arrow)
    bits = max(int(arrow.bit_width), 8) if is_fixed else 64
    made = np.random.default_rng(seed)
    mask = made.random(rows) < nulls
    if pa.types.is_string(arrow):
        short = numbers(shape, rows, seed, 16, signed=False)
        texts = [f"{'é' * (n % 7)}{n}{'x' * (n % 90)}" if n % 3 else "" for n in short.tolist()]
        return pa.array(texts, arrow, mask=mask)
    if pa.types.is_decimal(arrow):
        limit = 10 ** min(arrow.precision, 18)
        values = [int(n) % limit - limit // 2 for n in numbers(shape, rows, seed, 64, signed=True)]
        unscaled = pa.array(values, pa.int64(), mask=mask).cast(pa.decimal128(19))
        return pa.Array.from_buffers(arrow, rows, unscaled.buffers(), unscaled.null_count)
    if pa.types.is_floating(arrow):
        raw = numbers(shape, rows, seed, bits, signed=True)
        return pa.array(raw.view(f"f{bits // 8}"), arrow, mask=mask)
    if name.startswith("Enum"):
        return pa.array(1 + numbers("few", rows, seed, 8, signed=False) % 2, arrow, mask=mask)
    if pa.types.is_temporal(arrow):
        ticks = numbers(shape, rows, seed, 32, signed=True).astype(f"i{bits // 8}")
        ticks = np.abs(ticks) % 65_536 if name == "Date" else ticks
        return pa.array(ticks, pa.int32() if bits == 32 else pa.int64(), mask=mask).cast(arrow)
    if name == "Bool":
        return pa.array(numbers(shape, rows, seed, 8, signed=False) % 2 == 0, mask=mask)
    if name == "Array(UInt8)":
        return pa.array([[n % 5] * (n % 3) for n in range(rows)], arrow)
    if name.startswith("Tuple"):
        return pa.array([{"a": n % 5, "b": str(n)} for n in range(rows)], arrow)
    if name.startswith("FixedString"):
        return pa.array([b"abc"] * rows, arrow, mask=mask)
    return pa.array(numbers(shape, rows, seed, bits, signed=name[0] == "I"), arrow, mask=mask)


def bits_of(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return a column that is equal to another one of the same bits: NaN equals itself."""
    if pa.types.is_floating(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        return pa.chunked_array([chunk.view(width) for chunk in chunks], width)
    return column


class NoRows:
    def inline_rows(self, part: Part) -> bytes:
        raise AssertionError("not inline")


def table_of(columns: list[tuple[str, str]], granule: int, order_by: bool) -> Table:
    """Return a table of (type, codec) columns."""
    return Table(
        "t",
        "default",
        "t",
        Engine("MergeTree"),
        tuple(
            Column(at, f"c{at}", parse_type(name), codec=codec)
            for at, (name, codec) in enumerate(columns, 1)
        ),
        sorting_key=(KeyItem("c1"),) if order_by else (),
        settings=(("index_granularity", granule),),
    )


def written(store: Store, table: Table, rows: pa.Table) -> Part:
    plan = PartPlan("all", (), NewBlock("t", 0), inline_bytes_max=0)
    return write_part(store, table, rows, plan, lease_id="1ea5e", threads=1).part


COLUMNS = st.tuples(
    st.sampled_from([*KNOWN, *OTHERS]),
    st.sampled_from(SHAPES),
    st.sampled_from(CODECS),
    st.sampled_from([None, 0.0, 0.3, 1.0]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(COLUMNS, min_size=1, max_size=4),
    st.one_of(st.integers(1, 3_000), st.integers(4_096, 9_000)),
    st.sampled_from([64, 1_000, 10_000]),
    st.integers(0, 1 << 30),
)
def test_readers_with_and_without_kernels_agree(
    columns: list[tuple[str, str, str, float | None]], rows: int, granule: int, seed: int
) -> None:
    """Parts of our writer: all types, codecs, shapes and shares of NULL, any row groups of them."""
    named, arrays = [], []
    for at, (name, shape, codec, nulls) in enumerate(columns):
        is_nullable = nulls is not None and "(UInt8)" not in name and "Tuple" not in name
        full = f"Nullable({name})" if is_nullable else name
        if name.startswith("LowCardinality"):
            full = "LowCardinality(Nullable(String))" if is_nullable else name
        integer = "Int" in name and "(" not in name
        named.append((full, codec if integer or "Delta" not in codec else ""))
        arrays.append(column_of(name, shape, rows, seed + at, nulls or 0.0 if is_nullable else 0.0))
    table = table_of(named, granule, columns[0][0] == "UInt32" and columns[0][1] == "ascending")
    data = pa.table(arrays, names=[f"c{at}" for at in range(1, len(arrays) + 1)])
    store = MemoryStore()
    part = written(store, table, data)
    groups = -(-rows // granule)
    chosen = sorted(random.Random(seed).sample(range(groups), k=max(1, groups // 2)))
    for wanted in (chosen, None):
        by_kernel = read(store, part, table, wanted)
        with without_kernels():
            by_arrow = read(store, part, table, wanted)
        for one, other in zip(by_kernel.columns, by_arrow.columns, strict=True):
            one.validate(full=True)
            assert one.type == other.type
            assert bits_of(one).equals(bits_of(other))


def read(store: Store, part: Part, table: Table, groups: list[int] | None = None) -> pa.Table:
    """Read all columns by a first read: nothing of them is in the cache."""
    store.cache.columns.forget()
    reader = PartReader(store, NoRows(), part, table)
    return reader.read([column.name for column in table.columns], groups)


# --- pages of other writers, and damaged ones


def file_of(columns: dict[str, pa.Array], **options: object) -> tuple[bytes, PartFooter]:
    """Return a Parquet file with a column id and type for each column, and its footer."""
    fields = [
        pa.field(
            name,
            array.type,
            nullable=bool(array.null_count),
            metadata={"PARQUET:field_id": str(at), "olapdb.type": ""},
        )
        for at, (name, array) in enumerate(columns.items(), 1)
    ]
    sink = io.BytesIO()
    rows = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(rows, sink, write_page_checksum=True, **{"compression": "lz4", **options})
    data = sink.getvalue()
    return data, footer_of(data)


def footer_of(data: bytes) -> PartFooter:
    file = pq.ParquetFile(io.BytesIO(data))
    return PartFooter(file.metadata, file_columns(file.schema_arrow))


def decoded(data: bytes, footer: PartFooter, name: str) -> pa.Array | None:
    """Decode all row groups of a column by a kernel."""
    column = next(column for column in footer.columns.values() if column.name == name)
    pages, source = column_pages(footer, column), PageSource.of(pa.BufferReader(data))
    assert source is not None
    if pages is None:
        return None
    return decode_pages(source, pages, range(footer.metadata.num_row_groups))


def samples(rows: int = 5_000) -> dict[str, pa.Array]:
    return {
        "small": column_of("UInt16", "few", rows, 1, 0),
        "large": column_of("Int64", "any", rows, 2, 0.2),
        "key": column_of("UInt32", "ascending", rows, 3, 0),
        "float": column_of("Float64", "few", rows, 4, 0.5),
        "text": column_of("String", "few", rows, 5, 0.3),
        "texts": column_of("String", "any", rows, 6, 0),
    }


WRITERS = [
    {},
    {"use_dictionary": False},
    {"use_dictionary": False, "data_page_size": 512},
    {"data_page_size": 300, "dictionary_pagesize_limit": 700},
    {"row_group_size": 700, "write_statistics": False},
    {"compression": "none", "data_page_size": 1_000},
    {
        "use_dictionary": False,
        "column_encoding": {"small": "DELTA_BINARY_PACKED", "large": "DELTA_BINARY_PACKED"},
    },
]
LEFT_TO_ARROW = [
    {"compression": "zstd"},
    {"data_page_version": "2.0"},
    {"use_dictionary": False, "column_encoding": {"float": "BYTE_STREAM_SPLIT"}},
]


@pytest.mark.parametrize("options", [*WRITERS, *LEFT_TO_ARROW], ids=str)
def test_encodings_and_sizes_of_pages(options: dict[str, object]) -> None:
    columns = samples()
    data, footer = file_of(columns, **options)
    read = 0
    for name, array in columns.items():
        values = decoded(data, footer, name)
        if values is not None:
            values.validate(full=True)
            assert bits_of(values).equals(bits_of(array)), name
            assert values.null_count == array.null_count
            read += 1
    assert read == len(columns) if options in WRITERS else read < len(columns)


def test_pages_without_checksums_are_left_to_arrow() -> None:
    columns = samples(100)
    fields = [pa.field("small", pa.uint16(), metadata={"PARQUET:field_id": "1"})]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([columns["small"]], schema=pa.schema(fields)), sink)
    assert decoded(sink.getvalue(), footer_of(sink.getvalue()), "small") is None


def test_times_of_day_within_a_second_are_left_to_arrow() -> None:
    """A file in which a DateTime has milliseconds: the kernel does not drop them."""
    data, footer = file_of({"c1": pa.array([0, 1_000, 2_500], pa.timestamp("ms", "UTC"))})
    (column,) = footer.columns.values()
    named = FileColumn(1, "c1", column.type, "DateTime('UTC')", 0, 1)
    pages, source = column_pages(footer, named), PageSource.of(pa.BufferReader(data))
    assert pages is not None
    assert source is not None
    assert decode_pages(source, pages, [0]) is None


@pytest.mark.parametrize("options", WRITERS, ids=str)
def test_flipped_bytes_give_equal_values_or_none(options: dict[str, object]) -> None:
    """Flipped bytes anywhere in the pages, cut files: never other values, and never a crash."""
    columns = samples(700)
    data, footer = file_of(columns, **options)
    end = len(data) - footer.metadata.serialized_size - 8
    made = random.Random(str(options))
    for _ in range(1_500):
        changed = bytearray(data)
        for _ in range(made.choice([1, 1, 1, 3])):
            changed[made.randrange(4, end)] ^= made.choice([1 << made.randrange(8), 0xFF])
        for name, array in columns.items():
            values = decoded(bytes(changed), footer, name)
            if values is not None:
                values.validate(full=True)
                assert bits_of(values).equals(bits_of(array)), name
    for size in (0, 10, end // 2, end - 1):
        for name, array in columns.items():
            values = decoded(data[:size], footer, name)
            assert values is None or bits_of(values).equals(bits_of(array))


def test_a_damaged_page_is_the_same_error_with_and_without_kernels(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = table_of([("UInt64", ""), ("String", "")], 65_536, order_by=False)
    rows = pa.table(
        {
            "c1": column_of("UInt64", "any", 200_000, 1, 0),
            "c2": column_of("String", "any", 200_000, 2, 0),
        }
    )
    part = written(store, table, rows)
    path = tmp_path / part.path
    changed = bytearray(path.read_bytes())
    changed[1_000] ^= 1
    path.write_bytes(changed)
    texts = []
    for forms in (nullcontext(), without_kernels()):
        with forms, pytest.raises(Error) as raised:
            read(store, part, table)
        texts.append((type(raised.value), raised.value.message))
    assert texts[0] == texts[1]
    assert part.id in texts[0][1]


# --- damage that checksums do not tell: pages whose checksum was made after they were changed


def pages_of(data: bytes, footer: PartFooter) -> list[tuple[int, int, int]]:
    """Return where the checksum of each page begins in its header, where the page begins, and where it ends. Only
    checksums of five bytes, which most are: any other one fits there."""
    found = []
    for group in range(footer.metadata.num_row_groups):
        for leaf in range(footer.metadata.num_columns):
            chunk = footer.metadata.row_group(group).column(leaf)
            at = chunk.data_page_offset
            if chunk.has_dictionary_page:
                at = min(at, chunk.dictionary_page_offset)
            end = at + chunk.total_compressed_size
            while at < end:
                checksum, checksum_bytes, start, size = header_at(data, at)
                at = start + size
                if checksum_bytes == CHECKSUM_BYTES:
                    found.append((checksum, start, at))
    return found


CHECKSUM_BYTES = 5
INTEGER, STRUCT = 5, 12
"""Kinds of fields in headers. Those of pages without statistics have no others but booleans."""


def header_at(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Return where the checksum in a page's header begins, its bytes, where the page begins, and its bytes."""
    checksum = checksum_bytes = size = 0
    fields = [0]  # the last one of each struct that is open
    while fields:
        byte = data[at]
        at += 1
        if byte == 0:
            fields.pop()
            continue
        fields[-1] += byte >> 4
        if byte & 15 == STRUCT:
            fields.append(0)
        elif byte & 15 == INTEGER:
            number, start = 0, at
            while True:
                number |= (data[at] & 127) << 7 * (at - start)
                at += 1
                if data[at - 1] < 128:
                    break
            if fields == [3]:
                size = number >> 1
            elif fields == [4]:
                checksum, checksum_bytes = start, at - start
    return checksum, checksum_bytes, at, size


def sign(data: bytearray, page: tuple[int, int, int]) -> None:
    """Write the checksum that a page has now into its header."""
    checksum, start, end = page
    signed = zlib.crc32(data[start:end])
    signed -= (signed >> 31) << 32
    number = (signed << 1 ^ signed >> 31) & 0xFFFFFFFF
    for at in range(CHECKSUM_BYTES):
        more = 128 if at < CHECKSUM_BYTES - 1 else 0
        data[checksum + at] = number >> 7 * at & 127 | more


@pytest.mark.parametrize("options", WRITERS, ids=str)
def test_damage_with_right_checksums_never_crashes(options: dict[str, object]) -> None:
    """Bytes that are changed within pages, in headers too, whose checksums are made to fit: each length, code and
    difference that a page names may be wrong. A kernel gives arrays that are valid, or nothing."""
    columns = samples(700)
    data, footer = file_of(columns, **{**options, "write_statistics": False})
    pages = pages_of(data, footer)
    assert pages
    untouched = bytearray(data)
    for page in pages:
        sign(untouched, page)
    for name, array in columns.items():
        values = decoded(bytes(untouched), footer, name)
        assert values is not None
        assert bits_of(values).equals(bits_of(array))
    made = random.Random(str(options))
    answers = 0
    for _ in range(3_000):
        changed = bytearray(data)
        page = made.choice(pages)
        _, start, end = page
        for _ in range(made.choice([1, 1, 2, 8])):
            # Lengths, widths and the first codes are at the beginning.
            last = end if made.random() < 0.5 else min(start + 24, end)
            changed[made.randrange(start, last)] = made.choice(
                [0, 1, 127, 128, 255, made.randrange(256)]
            )
        if made.random() < 0.2:
            changed[made.randrange(start - 24, start)] ^= 1 << made.randrange(8)
        sign(changed, page)
        for name, array in columns.items():
            values = decoded(bytes(changed), footer, name)
            if values is not None:
                is_text = pa.types.is_string(
                    values.type
                )  # its letters may be damaged, as Arrow has them
                (values.view(pa.binary()) if is_text else values).validate(full=True)
                assert len(values) == len(array)
                answers += 1
    assert answers > len(columns) * 1_000


# --- what a first read costs


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs Linux")
def test_a_first_read_reads_the_pages_of_its_columns_and_row_groups_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = table_of([("UInt64", ""), ("String", ""), ("Int32", "")], 10_000, order_by=False)
    rows = pa.table(
        {
            f"c{at}": column_of(name, "any", 200_000, at, 0)
            for at, name in enumerate(("UInt64", "String", "Int32"), 1)
        }
    )
    part = written(store, table, rows)
    store.cache.columns.forget()
    reader = PartReader(store, NoRows(), part, table)
    groups = [0, 1, 2, 5]
    footer = reader._file.footer()
    wanted = sum(
        footer.metadata.row_group(group).column(leaf).total_compressed_size
        for group in groups
        for leaf in (0, 2)
    )
    before = _bytes_read()
    reader.read(["c1", "c3"], groups)
    read_bytes = _bytes_read() - before
    assert wanted <= read_bytes <= wanted + 4_096
    columns = store.cache.columns
    kept = {(key.column_id, key.row_group) for _, key, *_ in columns.shared.entries(columns.store)}
    assert kept == {(column, group) for column in (1, 3) for group in groups}


def test_row_groups_of_a_window_are_decoded_into_one_array() -> None:
    store = MemoryStore()
    table = table_of([("UInt16", "")], 64, order_by=False)
    part = written(store, table, pa.table({"c1": column_of("UInt16", "any", 640, 1, 0)}))
    (column,) = read(store, part, table).columns
    assert column.num_chunks == 1
    columns = store.cache.columns
    keys = [ChunkKey(1, group, False) for group in range(10)]
    chunks = columns.shared.get(columns.file(part.path), keys)
    assert neighbours([chunk for chunk in chunks if chunk is not None]) is not None
    assert None not in chunks


def test_runs_end_where_windows_do() -> None:
    group_rows = 1 << 20  # a window has two row groups
    assert [list(run) for run in runs_in_windows([0, 1, 2, 3, 5, 6], group_rows)] == [
        [0, 1],
        [2, 3],
        [5],
        [6],
    ]


def _bytes_read() -> int:
    """Return the bytes that this process has read by system calls."""
    with open("/proc/self/io", encoding="ascii") as lines:
        return int(lines.readline().split()[1])
