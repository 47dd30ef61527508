"""Any reader gets back the parts as written, and detects parts that were changed."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olapdb.catalog.sqlite.inline import inflated, stored_form
from olapdb.errors import ChecksumDoesntMatch, CorruptedData, FileDoesntExist, InternalError
from olapdb.functions import parse_type
from olapdb.model.encoding import FOOTER_KEY
from olapdb.model.part import Contribution, NewBlock, Part
from olapdb.model.schema import Column, Engine, KeyItem, Table
from olapdb.storage import part_file
from olapdb.storage.checksum import verify_file
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.reader import PartReader
from olapdb.storage.store import LocalStore, MemoryStore, Store
from olapdb.storage.writer import StagedPart, lease_of_path, write_part

pytestmark = pytest.mark.feature("storage")

TYPES = (
    "UInt64",
    "Int8",
    "String",
    "DateTime",
    "DateTime64(3)",
    "DateTime64(9)",
    "Date",
    "Nullable(Int32)",
    "Array(DateTime)",
    "Map(String, DateTime)",
    "AggregateFunction(avg, UInt64)",
    "Decimal(50, 3)",
    "Decimal(10, 2)",
    "FixedString(3)",
    "Bool",
    "Float64",
    "Array(Tuple(String, Int8))",
    "LowCardinality(Nullable(String))",
    "UUID",
    "Float32",
)


def everything_table(**more: object) -> Table:
    """Return a column of each type; two names need quoting: `a.b` and `weird name`."""
    names = [f"c{i}" for i in range(len(TYPES))]
    names[2], names[7] = "a.b", "weird name"
    columns = tuple(
        Column(i + 1, name, parse_type(text))
        for i, (name, text) in enumerate(zip(names, TYPES, strict=True))
    )
    facts = {"columns": columns, "sorting_key": (KeyItem("c0"),), **more}
    return Table("t", "default", "t", Engine("MergeTree"), **facts)  # type: ignore[arg-type]


def everything_rows(table: Table, count: int) -> pa.Table:
    at = np.arange(count)
    values: dict[str, object] = {
        "UInt64": at.astype("uint64") + np.uint64(2**63),
        "Int8": (at % 250 - 125).astype("int8"),
        "String": [f"s{i % 7}" for i in at],
        "DateTime": pa.array(at),
        "DateTime64(3)": pa.array(at * 7),
        "DateTime64(9)": pa.array(at * 11),
        "Date": pa.array((at % 100).astype("int32")),
        "Nullable(Int32)": [None if i % 3 else int(i) for i in at],
        "Array(DateTime)": [[int(i)] * (i % 3) for i in at],
        "Map(String, DateTime)": [[("a", int(i))] for i in at],
        "AggregateFunction(avg, UInt64)": None,
        "Decimal(50, 3)": [Decimal(int(i)) / 8 for i in at],
        "Decimal(10, 2)": [Decimal(int(i % 1000)) / 4 for i in at],
        "FixedString(3)": [b"abc"] * count,
        "Bool": [bool(i % 2) for i in at],
        "Float64": at / 7,
        "Array(Tuple(String, Int8))": [[{"1": "x", "2": 1}]] * count,
        "LowCardinality(Nullable(String))": [None if i % 2 else "x" for i in at],
        "UUID": [b"x" * 16] * count,
        "Float32": (at / 3).astype("float32"),
    }
    arrays = []
    for column, text in zip(table.columns, TYPES, strict=True):
        given, arrow = values[text], column.type.arrow
        if given is None:
            fields = {f.name: pa.array(at).cast(f.type) for f in arrow}
            arrays.append(pa.StructArray.from_arrays(list(fields.values()), fields=list(arrow)))
        elif isinstance(given, pa.Array):
            arrays.append(given.cast(arrow))
        else:
            arrays.append(pa.array(given, arrow))
    return pa.table(arrays, names=[c.name for c in table.columns])


class NoRows:
    def inline_rows(self, part: Part) -> bytes:
        raise AssertionError("not inline")


class Inline:
    def __init__(self, rows: bytes | None) -> None:
        self.rows = rows

    def inline_rows(self, part: Part) -> bytes:
        assert self.rows is not None
        return self.rows


def write(store: Store, table: Table, rows: pa.Table, **more: object) -> StagedPart:
    plan = replace(PartPlan("all", (), NewBlock("t", 0)), **more)  # type: ignore[arg-type]
    return write_part(store, table, rows, plan, lease_id="1ea5e")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


@pytest.mark.parametrize("inline_bytes_max", [0, 1 << 30])
def test_every_type_comes_back(store: Store, inline_bytes_max: int) -> None:
    table = everything_table()
    rows = everything_rows(table, 1000)
    staged = write(store, table, rows, inline_bytes_max=inline_bytes_max)
    assert staged.part.inline == bool(inline_bytes_max)
    reader = PartReader(store, Inline(staged.inline_rows), staged.part, table)
    names = [c.name for c in table.columns]
    assert reader.read(names).equals(rows)  # as the writer left it in the column cache
    store.cache.forget(staged.part.path)
    assert reader.read(names).equals(rows)  # from the file
    assert reader.read(names).equals(rows)  # as the reader left it in the column cache
    assert reader.read(["weird name", "a.b"]).equals(rows.select(["weird name", "a.b"]))
    assert reader.read([]).num_columns == 0
    assert staged.part.rows == sum(g.rows for g in reader.row_groups) == 1000
    assert set(staged.part.uncompressed_bytes) == set(names)


def test_memory_store_holds_parts_too() -> None:
    table, store = everything_table(), MemoryStore()
    rows = everything_rows(table, 100)
    staged = write(store, table, rows)
    assert PartReader(store, NoRows(), staged.part, table).read(["c0"]).equals(rows.select(["c0"]))


def test_row_groups_follow_index_granularity_and_know_their_bounds(store: Store) -> None:
    table = everything_table(settings=(("index_granularity", 100),))
    rows = everything_rows(table, 250)
    part = write(store, table, rows).part
    reader = PartReader(store, NoRows(), part, table)
    assert [g.rows for g in reader.row_groups] == [100, 100, 50]
    assert part.granules == 3
    second = reader.row_groups[1].bounds
    assert second["c0"] == (2**63 + 100, 2**63 + 199, 0)
    assert second["c3"] == (100, 199, 0), "DateTime in seconds, though Parquet has milliseconds"
    assert second["c4"] == (700, 1393, 0)
    assert second["c5"] == (1100, 2189, 0)
    assert second["a.b"] == ("s0", "s6", 0)
    assert second["c6"] == (0, 99, 0)
    assert second["weird name"] == (102, 198, 67)
    assert second["c14"] == (False, True, 0)
    for name in ("c8", "c10", "c11", "c12", "c13", "c18", "nothing"):
        assert name not in second
    assert reader.read(["c0"], [1]).equals(rows.select(["c0"]).slice(100, 100))
    assert reader.read(["c0"], [2, 0]).num_rows == 150
    assert part.bounds["c3"] == (0, 249, 0)


def test_bounds_that_would_lie_are_left_out(store: Store) -> None:
    columns = (
        Column(1, "f", parse_type("Float64")),
        Column(2, "s", parse_type("String")),
        Column(3, "e", parse_type("Nullable(Int32)")),
    )
    table = Table("t", "default", "t", Engine("MergeTree"), columns)
    rows = pa.table(
        {"f": [1.0, float("nan")], "s": ["a", "b" * 65], "e": pa.array([None, None], pa.int32())}
    )
    part = write(store, table, rows).part
    assert part.bounds == {"e": (None, None, 2)}, "NaN is outside of any interval"
    group = PartReader(store, NoRows(), part, table).row_groups[0]
    assert "f" not in group.bounds
    assert group.bounds["s"] == ("a", "b" * 65, 0)
    assert group.bounds["e"] == (None, None, 2)


def test_other_readers_understand_a_part(store: LocalStore) -> None:
    table = everything_table()
    rows = everything_rows(table, 70_000)
    made = Contribution("v", 1, "s", None, (NewBlock("s", 0),), 7)
    part = write(store, table, rows, contributions=(made,), partition_value=(202401, "x")).part
    local = store.local_path(part.path)
    assert local is not None
    plain = pq.read_table(local)
    assert plain.num_rows == 70_000
    assert plain.column_names == [c.name for c in table.columns]
    file = pq.ParquetFile(local)
    assert file.metadata.num_row_groups == 2
    assert file.metadata.row_group(0).sorting_columns[0].column_index == 0
    facts = json.loads(file.metadata.metadata[FOOTER_KEY])
    assert facts["table_id"] == "t"
    assert facts["partition_value"] == [202401, "x"]
    assert facts["contributions"][0][:2] == ["v", 1]
    types = [column[2] for column in json.loads(facts["table"])["columns"]]
    assert types == list(TYPES)


def test_a_placeholder_part_has_no_bytes(store: LocalStore) -> None:
    table = everything_table()
    staged = write(store, table, everything_rows(table, 0))
    assert (staged.part.rows, staged.part.path, staged.inline_rows) == (0, "", None)
    reader = PartReader(store, NoRows(), staged.part, table)
    assert reader.row_groups == ()
    assert reader.read(["c0"]).num_rows == 0


def test_columns_are_found_by_id(store: Store) -> None:
    table = everything_table()
    rows = everything_rows(table, 10)
    for limit in (0, 1 << 20):
        staged = write(store, table, rows, inline_bytes_max=limit)
        kept = [replace(c, name="renamed") if c.name == "c0" else c for c in table.columns]
        kept = [replace(c, id=99) if c.name == "c1" else c for c in kept]
        newer = replace(table, columns=tuple(kept), version=2)
        reader = PartReader(store, Inline(staged.inline_rows), staged.part, newer)
        found = reader.read(["renamed", "c1"])
        assert found.column_names == ["renamed"], "c1 was dropped and added again: a new column"
        assert found.column("renamed").equals(rows.column("c0"))
        assert reader.has_column("renamed")
        assert not reader.has_column("c1")


def test_rows_that_do_not_fit_are_a_bug(store: Store) -> None:
    table = everything_table()
    rows = everything_rows(table, 3)
    with pytest.raises(InternalError):
        write(store, table, rows.drop_columns(["c1"]))
    with pytest.raises(InternalError):
        write(store, table, rows.set_column(0, "c0", pa.array([1, 2, 3], pa.int64())))
    with pytest.raises(InternalError):
        write(store, table, rows.set_column(0, "c0", pa.array([1, None, 3], pa.uint64())))


def test_files_bear_their_lease(store: Store) -> None:
    table = everything_table()
    part = write(store, table, everything_rows(table, 3)).part
    assert lease_of_path(part.path) == lease_of_path(part.path + ".tmp") == "1ea5e"
    assert lease_of_path("data/t/strange") == ""


@pytest.mark.parametrize("rows", [1_000, 200_000])
def test_any_changed_byte_is_noticed(store: LocalStore, rows: int) -> None:
    """A small file is checked whole; of a large one the footer, then each page as it is read."""
    table = Table("t", "default", "t", Engine("MergeTree"), (Column(1, "n", parse_type("UInt64")),))
    random = np.random.default_rng(1)
    part = write(
        store, table, pa.table({"n": random.integers(0, 2**63, rows).astype("uint64")})
    ).part
    verify_file(store, part)
    path = store.root / part.path
    good = path.read_bytes()
    for place in (len(good) // 3, len(good) // 2, len(good) - 20):
        bad = bytearray(good)
        bad[place] ^= 0x10
        path.write_bytes(bytes(bad))
        store.cache.forget(part.path)
        with pytest.raises(CorruptedData, match=part.id):
            PartReader(store, NoRows(), part, table).read(["n"])
        with pytest.raises(ChecksumDoesntMatch, match=part.id):
            verify_file(store, part)
    path.write_bytes(good[:-100])
    store.cache.forget(part.path)
    with pytest.raises(ChecksumDoesntMatch, match="bytes"):
        PartReader(store, NoRows(), part, table).read(["n"])
    path.unlink()
    store.cache.forget(part.path)
    with pytest.raises(FileDoesntExist, match=part.path):
        PartReader(store, NoRows(), part, table).read(["n"])


def test_changed_inline_rows_are_noticed(store: LocalStore) -> None:
    table = everything_table()
    staged = write(store, table, everything_rows(table, 10), inline_bytes_max=1 << 20)
    assert staged.inline_rows is not None
    bad = staged.inline_rows[:-200] + b"\1" + staged.inline_rows[-199:]
    with pytest.raises(ChecksumDoesntMatch, match="inline"):
        PartReader(store, Inline(bad), staged.part, table).read(["c0"])


def test_a_point_read_opens_only_what_it_needs(store: LocalStore) -> None:
    """Reading one column of one row group of a large part does not read its whole file."""
    columns = tuple(Column(i, f"n{i}", parse_type("UInt64")) for i in range(1, 9))
    table = Table("t", "default", "t", Engine("MergeTree"), columns)
    random = np.random.default_rng(1)
    rows = pa.table({c.name: random.integers(0, 2**63, 300_000).astype("uint64") for c in columns})
    part = write(store, table, rows).part
    before = _bytes_read()
    PartReader(store, NoRows(), part, table).read(["n3"], [2])
    assert _bytes_read() - before < part.bytes / 20


def _bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def test_only_texts_that_repeat_are_read_as_dictionaries(store: Store) -> None:
    columns = (Column(1, "few", parse_type("String")), Column(2, "many", parse_type("String")))
    table = everything_table(columns=columns, sorting_key=(KeyItem("few"),))
    count = 3_000
    values = {
        "few": [f"a text of some length {at % 5}" for at in range(count)],
        "many": [f"a text of some length {at}" for at in range(count)],
    }
    rows = pa.table({name: sorted(texts) for name, texts in values.items()})
    part = write(store, table, rows, inline_bytes_max=0).part
    read = PartReader(store, NoRows(), part, table).read(["few", "many"], coded=["few", "many"])
    assert pa.types.is_dictionary(read["few"].type)
    assert read["many"].type == pa.string()
    assert read["few"].cast(pa.string()).to_pylist() == rows["few"].to_pylist()
    assert read["many"].to_pylist() == rows["many"].to_pylist()


def test_row_groups_come_back_whatever_is_decoded_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = everything_table(settings=(("index_granularity", 100),))
    rows = everything_rows(table, 750)
    part = write(store, table, rows, inline_bytes_max=0).part
    names = [column.name for column in table.columns]
    groups = [0, 1, 3, 4, 7]
    read = []
    for bytes_max in (0, 1 << 12, 1 << 40):
        monkeypatch.setattr(part_file, "_DECODED_BYTES", bytes_max)
        made = PartReader(store, NoRows(), part, table, caches=False)
        assert made.read(names).equals(rows)
        read.append(made.read(names, groups))
    expected = pa.concat_tables([rows.slice(100 * group, 100) for group in groups])
    assert all(one.equals(expected) for one in read)


def test_an_inline_part_that_is_not_small_is_packed_by_its_writer() -> None:
    columns = (Column(1, "k", parse_type("UInt64")), Column(2, "s", parse_type("String")))
    table = Table("t", "default", "t", Engine("MergeTree"), columns)
    plan = PartPlan("all", (), NewBlock("t", 0), inline_bytes_max=1 << 20)
    store = MemoryStore()
    for count, is_packed in ((100, False), (10_000, True)):
        numbers = np.arange(count, dtype=np.uint64)
        rows = pa.table({"k": numbers, "s": pa.array([f"name {n % 10}" for n in range(count)])})
        staged = write_part(store, table, rows, plan, lease_id="l")
        assert staged.part.inline
        assert staged.inline_rows is not None
        assert staged.part.bytes == len(staged.inline_rows)
        value_bytes = sum(staged.part.uncompressed_bytes.values())
        assert (len(staged.inline_rows) < value_bytes) == is_packed
        stored = stored_form(staged.inline_rows, value_bytes)
        assert (stored is staged.inline_rows) == is_packed
        assert len(stored) < value_bytes
        assert inflated(stored) == staged.inline_rows
        assert pa.ipc.open_file(inflated(stored)).read_all().to_pydict() == rows.to_pydict()
