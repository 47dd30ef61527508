"""The cache of decoded columns keeps what is used again, within its bytes, and nothing stale."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from olapdb.config import tuning
from olapdb.functions import parse_type
from olapdb.model.part import NewBlock, Part
from olapdb.model.schema import Column, Engine, Table
from olapdb.native.library import library
from olapdb.storage.column_cache import ChunkKey, ColumnCache, FileKey, StoreColumns
from olapdb.storage.column_chunks import split_column, window_groups
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.reader import PartReader
from olapdb.storage.store import LocalStore
from olapdb.storage.writer import write_part

pytestmark = pytest.mark.feature("storage")

GROUP_ROWS = 1 << 16
CHUNK = pa.array(np.zeros(125, np.int64))
"""1,000 bytes."""


def put(cache: ColumnCache, path: str, count: int) -> None:
    for group in range(count):
        cache.put(FileKey(0, path), ChunkKey(1, group, False), CHUNK)


def cached(cache: ColumnCache, path: str, count: int) -> int:
    keys = [ChunkKey(1, group, False) for group in range(count)]
    return sum(values is not None for values in cache.get(FileKey(0, path), keys))


def test_it_stays_within_its_bytes() -> None:
    cache = ColumnCache(20_000)
    put(cache, "a", 50)
    assert cache.bytes == 20_000
    assert cache.statistics().entries == 20
    assert cache.statistics().evicted_bytes == 30_000


def test_one_large_scan_does_not_flush_what_is_used() -> None:
    cache = ColumnCache(20_000)
    put(cache, "hot", 10)
    assert cached(cache, "hot", 10) == 10
    put(cache, "scan", 1_000)
    assert cached(cache, "hot", 10) == 10


def test_what_comes_back_soon_after_it_was_evicted_stays() -> None:
    cache = ColumnCache(20_000)
    put(cache, "a", 30)
    assert cached(cache, "a", 10) == 0
    put(cache, "a", 10)
    put(cache, "scan", 1_000)
    assert cached(cache, "a", 10) == 10


def test_an_entry_of_more_than_a_tenth_is_not_kept() -> None:
    cache = ColumnCache(9_000)
    put(cache, "a", 1)
    assert cache.statistics().entries == 0


def test_files_stores_and_everything_are_forgotten() -> None:
    cache = ColumnCache(200_000)
    for store in (0, 1):
        for path in ("a", "b"):
            cache.put(FileKey(store, path), ChunkKey(1, 0, False), CHUNK)
    cache.forget_file(FileKey(0, "a"))
    assert [path for path, *_ in cache.entries(0)] == ["b"]
    cache.forget_store(0)
    assert (list(cache.entries(0)), cache.bytes) == ([], 2_000)
    cache.clear()
    assert cache.bytes == 0


def test_files_that_come_and_go_leave_nothing_behind() -> None:
    cache = ColumnCache(200_000)
    for number in range(10_000):
        put(cache, str(number), 3)
        cache.forget_file(FileKey(0, str(number)))
    assert cache.bytes == 0
    assert len(cache._new) < 5_000


def test_it_gives_way_and_grows_again() -> None:
    cache = ColumnCache(20_000)
    put(cache, "a", 20)
    cache.shrink_to(5_000)
    assert cache.bytes == 5_000
    put(cache, "b", 20)
    assert cache.bytes == 20_000
    cache.resize(0)
    put(cache, "c", 1)
    assert cache.bytes == 0


def test_threads_share_it() -> None:
    cache = ColumnCache(50_000)

    def work(number: int) -> None:
        for round_number in range(300):
            path = str((number + round_number) % 5)
            put(cache, path, 20)
            cached(cache, path, 20)
            if round_number % 50 == 0:
                cache.forget_file(FileKey(0, path))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert cache.bytes == sum(size for *_, size in cache.entries(0)) <= 50_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_reset_frees_a_lock_that_another_thread_held() -> None:
    cache = ColumnCache(50_000)
    put(cache, "a", 1)
    with cache._lock:
        cache.reset()
        put(cache, "b", 1)
    assert cached(cache, "b", 1) == 1


def test_rows_are_cut_without_a_copy_unless_that_keeps_much_else_in_memory() -> None:
    column = pa.chunked_array([pa.array(range(100))])
    (whole,) = split_column(column, [100])
    assert whole.buffers()[1].address == column.chunk(0).buffers()[1].address
    first, second = split_column(column, [60, 40])
    assert second.to_pylist() == list(range(60, 100))
    assert first.get_total_buffer_size() + second.get_total_buffer_size() == column.nbytes
    (copy,) = split_column(column, [100], copies=True)
    assert copy.buffers()[1].address != whole.buffers()[1].address
    (part,) = split_column(column.slice(10, 10), [10])
    assert part.to_pylist() == list(range(10, 20))
    first, second = split_column(column.slice(10, 10), [5, 5])
    assert first.get_total_buffer_size() == first.nbytes == 40


# --- what readers get


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    store = LocalStore(tmp_path)
    yield store
    store.cache.columns.forget()


TABLE = Table(
    "t",
    "default",
    "t",
    Engine("MergeTree"),
    (Column(1, "n", parse_type("UInt64")), Column(2, "s", parse_type("String"))),
    settings=(("index_granularity", 100),),
)
ROWS = pa.table(
    {"n": pa.array(np.arange(1_000, dtype="uint64")), "s": [str(n) for n in range(1_000)]}
)


class NoRows:
    def inline_rows(self, part: Part) -> bytes:
        raise AssertionError("not inline")


def written(store: LocalStore, rows: pa.Table = ROWS, *, owned: bool = False) -> Part:
    plan = PartPlan("all", (), NewBlock("t", 0), owns_rows=owned)
    return write_part(store, TABLE, rows, plan, lease_id="1ea5e").part


def cached_addresses(store: LocalStore, part: Part, column: int) -> list[int]:
    """Return where the values of the column's row groups lie."""
    columns = store.cache.columns
    keys = [ChunkKey(column, group, False) for group in range(10)]
    chunks = columns.shared.get(columns.file(part.path), keys)
    return [chunk.buffers()[1].address for chunk in chunks if chunk is not None]


def keys(store: LocalStore) -> set[tuple[int, int]]:
    columns = store.cache.columns
    return {(key.column_id, key.row_group) for _, key, *_ in columns.shared.entries(columns.store)}


def test_a_writer_leaves_its_rows_in_the_cache(store: LocalStore) -> None:
    part = written(store)
    assert keys(store) == {(column, group) for column in (1, 2) for group in range(10)}
    before = store.cache.columns.shared.statistics()
    assert PartReader(store, NoRows(), part, TABLE).read(["n", "s"]).equals(ROWS)
    after = store.cache.columns.shared.statistics()
    assert (after.hits - before.hits, after.misses - before.misses) == (20, 0)


def test_rows_that_a_part_owns_are_kept_without_a_copy(store: LocalStore) -> None:
    address = ROWS.column("n").chunk(0).buffers()[1].address
    assert set(cached_addresses(store, written(store, owned=True), 1)) == {address}
    assert address not in cached_addresses(store, written(store), 1)
    slice_of_much = pa.concat_tables([ROWS, ROWS, ROWS]).combine_chunks().slice(500, 1_000)
    part = written(store, slice_of_much, owned=True)
    assert len(set(cached_addresses(store, part, 1))) == 10
    assert PartReader(store, NoRows(), part, TABLE).read(["n", "s"]).equals(slice_of_much)


def test_rows_that_a_part_owns_leave_the_cache_together(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.cache.columns = StoreColumns(ColumnCache(1_000_000))
    written(store, owned=True)
    cache = store.cache.columns.shared
    assert cache.statistics().entries == 20
    cache.shrink_to(cache.bytes - 1)
    assert cache.statistics().entries == 10
    cache.shrink_to(0)
    assert cache.bytes == 0


def test_a_reader_decodes_each_chunk_once(store: LocalStore) -> None:
    part = written(store)
    store.cache.forget(part.path)
    reader = PartReader(store, NoRows(), part, TABLE)
    assert reader.read(["n"], [3, 7]).column("n").to_pylist() == [
        *range(300, 400),
        *range(700, 800),
    ]
    assert keys(store) == {(1, 3), (1, 7)}
    (store.root / part.path).rename(store.root / "elsewhere")
    assert reader.read(["n"], [7]).column("n").to_pylist() == [*range(700, 800)]
    with pytest.raises(Exception, match=part.path):
        reader.read(["n"], [8])
    with pytest.raises(Exception, match=part.path):
        reader.read(["s"], [7])


def test_chunks_of_the_cache_and_of_the_file_make_one_column(store: LocalStore) -> None:
    part = written(store)
    store.cache.forget(part.path)
    reader = PartReader(store, NoRows(), part, TABLE)
    reader.read(["n"], [1, 4])
    reader.read(["s"], [4])
    assert reader.read(["s", "n"]).equals(ROWS.select(["s", "n"]))
    assert reader.read(["n"], []).num_rows == 0


def test_a_reader_of_a_part_that_is_about_to_leave_keeps_nothing(store: LocalStore) -> None:
    part = written(store)
    store.cache.forget(part.path)
    assert PartReader(store, NoRows(), part, TABLE, caches=False).read(["n", "s"]).equals(ROWS)
    assert keys(store) == set()


def test_a_column_that_changed_its_type_is_cast_after_the_cache(store: LocalStore) -> None:
    part = written(store)
    text = replace(TABLE.columns[0], type=parse_type("String"))
    later = replace(TABLE, version=1, columns=(text, TABLE.columns[1]))
    for table, value in ((TABLE, 7), (later, "7"), (TABLE, 7)):
        column = PartReader(store, NoRows(), part, table).read(["n"]).column("n")
        assert column[7].as_py() == value


def test_a_store_that_nobody_holds_leaves_the_cache(tmp_path: Path) -> None:
    abandoned = LocalStore(tmp_path / "abandoned")
    written(abandoned)
    columns, number = abandoned.cache.columns.shared, abandoned.cache.columns.store
    assert list(columns.entries(number))
    del abandoned
    gc.collect()
    written(LocalStore(tmp_path / "other"))
    assert not list(columns.entries(number))


def test_a_deleted_file_leaves_the_cache(store: LocalStore) -> None:
    part = written(store)
    store.delete(part.path)
    assert keys(store) == set()


def test_chunks_that_are_read_together_are_joined_once() -> None:
    cache, file = ColumnCache(100_000), FileKey(0, "a")
    keys = [ChunkKey(1, group, False) for group in range(4)]
    for group, key in enumerate(keys):
        values = [None if group == 2 else group] * 100
        cache.put(file, key, pa.array(values, pa.int64()))
    before = [chunk for chunk in cache.get(file, keys) if chunk is not None]
    joined = cache.join(file, keys, before)
    assert joined.equals(pa.concat_arrays(before))
    after = [chunk for chunk in cache.get(file, keys) if chunk is not None]
    assert all(a.equals(b) for a, b in zip(after, before, strict=True))
    again = cache.join(file, keys[1:], after[1:])
    assert again.equals(pa.concat_arrays(before[1:]))
    assert again.buffers()[1].address == joined.buffers()[1].address


def groups_in_cache(count: int) -> tuple[ColumnCache, FileKey, list[ChunkKey]]:
    """Return a cache with row groups of one column of a file, and their keys."""
    cache, file = ColumnCache(1 << 28), FileKey(0, "a")
    keys = [ChunkKey(1, group, False) for group in range(count)]
    for key in keys:
        cache.put(file, key, group_values(key))
    return cache, file, keys


def group_values(key: ChunkKey) -> pa.Array:
    """Return the values of a row group: its number in each row."""
    return pa.array(np.full(GROUP_ROWS, key.row_group, np.int8))


def read(cache: ColumnCache, file: FileKey, keys: list[ChunkKey]) -> pa.Array:
    """Return the row groups of `keys` as readers do, and check their values."""
    chunks = [chunk for chunk in cache.get(file, keys) if chunk is not None]
    assert len(chunks) == len(keys)
    joined = cache.join(file, keys, chunks)
    assert joined.to_numpy()[::GROUP_ROWS].tolist() == [key.row_group for key in keys]
    assert len(joined) == len(keys) * GROUP_ROWS
    return joined


def place(values: pa.Array) -> int:
    """Return where the memory of an array begins."""
    return int(values.buffers()[1].address)


def test_reads_of_other_groups_together_copy_each_group_once_more_at_most() -> None:
    cache, file, keys = groups_in_cache(10)
    read(cache, file, keys[:4])
    read(cache, file, keys[4:7])
    whole = place(read(cache, file, keys[3:6]))
    ways = [keys[:2], keys[1:9], keys[5:], keys, keys[:4], keys[4:7]]
    assert {place(read(cache, file, way)) for way in ways} == {whole}
    cache.shrink_to(cache.bytes - 1)
    assert cache.bytes == 0  # they leave together


def test_groups_of_two_windows_are_no_array_of_the_cache() -> None:
    window = window_groups(GROUP_ROWS)
    cache, file, keys = groups_in_cache(2 * window)
    before, behind = keys[window - 4 : window], keys[window : window + 4]
    first, second = place(read(cache, file, before)), place(read(cache, file, behind))
    assert place(read(cache, file, before[2:] + behind[:2])) not in (first, second)
    assert place(read(cache, file, before)) == first
    assert place(read(cache, file, behind)) == second


def test_a_gap_ends_what_is_joined() -> None:
    _, file, keys = groups_in_cache(10)
    gapped = ColumnCache(1 << 28)
    for key in keys:
        if key.row_group != 2:
            gapped.put(file, key, group_values(key))
    read(gapped, file, keys[4:6])
    whole = place(read(gapped, file, keys[5:7]))
    assert place(read(gapped, file, keys[3:])) == whole
    assert place(read(gapped, file, keys[:2])) != whole
    read(gapped, file, [keys[1], keys[3]])
    assert place(read(gapped, file, keys[3:])) == whole


def test_joined_chunks_leave_the_cache_together() -> None:
    cache, file = ColumnCache(20_000), FileKey(0, "a")
    put(cache, "a", 4)
    keys = [ChunkKey(1, group, False) for group in range(4)]
    cache.join(file, keys, [CHUNK] * 4)
    put(cache, "b", 40)
    assert cached(cache, "a", 4) == 0
    assert cache.bytes == 20_000
    assert cache.statistics().entries == 20
    cache.clear()
    assert cache.bytes == 0


# --- what is read for the first time


def test_much_that_is_read_once_is_not_kept_and_what_is_read_again_is(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = written(store)
    store.cache.forget(part.path)
    monkeypatch.setattr(tuning, "KEPT_AT_ONCE_BYTES_MAX", 1_000)
    reader = PartReader(store, NoRows(), part, TABLE)
    assert reader.read(["n", "s"]).equals(ROWS)
    assert keys(store) == set()
    assert reader.read(["n"]).equals(ROWS.select(["n"]))
    assert keys(store) == {(1, group) for group in range(10)}
    (store.root / part.path).rename(store.root / "elsewhere")
    assert reader.read(["n"]).equals(ROWS.select(["n"]))


def test_little_that_is_read_is_kept_at_once_also_beside_much(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = written(store)
    store.cache.forget(part.path)
    monkeypatch.setattr(tuning, "KEPT_AT_ONCE_BYTES_MAX", 1_600)
    reader = PartReader(store, NoRows(), part, TABLE)
    reader.read(["n"], [0, 1])
    assert keys(store) == {(1, 0), (1, 1)}
    assert reader.read(["n"]).equals(ROWS.select(["n"]))
    assert keys(store) == {(1, 0), (1, 1)}
    assert reader.read(["n"]).equals(ROWS.select(["n"]))
    assert keys(store) == {(1, group) for group in range(10)}


def test_what_was_read_once_is_forgotten_in_time() -> None:
    cache = ColumnCache(20_000)
    cache.reset()
    for number in range(100):
        keys = [ChunkKey(1, group, False) for group in range(10)]
        assert cache.is_first_read(FileKey(0, str(number)), keys, [8 << 20] * 10)
    assert len(cache._evicted) <= 10


def test_what_a_kernel_decodes_as_one_array_is_found_as_one(store: LocalStore) -> None:
    part = written(store)
    store.cache.forget(part.path)
    first = PartReader(store, NoRows(), part, TABLE).read(["n"]).column("n")
    columns = store.cache.columns
    file, key = columns.file(part.path), ChunkKey(1, 0, False)
    joined = columns.shared.joined(file, key, 10)
    if library() is None:
        assert joined is None
        return
    assert joined is not None
    assert first.num_chunks == 1
    assert place(joined) == place(first.chunk(0))
    assert joined.equals(first.chunk(0))


def test_the_cache_knows_whether_it_has_row_groups_that_follow_each_other() -> None:
    cache, file, group_keys = groups_in_cache(4)
    assert cache.has_groups(file, group_keys[0], 4)
    assert cache.has_groups(file, group_keys[1], 3)
    assert not cache.has_groups(file, group_keys[0], 5)
    assert not cache.has_groups(file, group_keys[0]._replace(coded=True), 1)
    assert not cache.has_groups(FileKey(0, "other"), group_keys[0], 1)
