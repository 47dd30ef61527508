"""Files appear whole or not at all, and their names are durable after sync."""

from __future__ import annotations

import errno
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from olapdb.errors import FileDoesntExist, NotEnoughSpace, ReadOnly
from olapdb.storage import store as store_module
from olapdb.storage.store import LocalStore, MemoryStore, Store

pytestmark = pytest.mark.feature("storage")


def write_text(store: Store, path: str, text: bytes) -> int:
    return store.write(path, lambda sink: sink.write(text))


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path) if request.param == "local" else MemoryStore()


def test_write_read_list_delete(store: Store) -> None:
    assert write_text(store, "data/a/one", b"12345") == 5
    write_text(store, "data/b/two", b"x")
    with store.open_input("data/a/one") as source:
        assert source.read() == b"12345"
    assert store.size("data/a/one") == 5
    assert {f.path: f.bytes for f in store.list("data/")} == {"data/a/one": 5, "data/b/two": 1}
    assert [f.path for f in store.list("data/a")] == ["data/a/one"]
    store.delete("data/a/one")
    store.delete("data/a/one")
    assert not store.exists("data/a/one")
    with pytest.raises(FileDoesntExist):
        store.open_input("data/a/one")
    with pytest.raises(FileDoesntExist):
        store.size("data/a/one")


def test_listing_what_is_not_there_is_empty(store: Store) -> None:
    assert list(store.list("data/")) == []


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)

    def write_half(sink: pa.NativeFile) -> None:
        sink.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(NotEnoughSpace, match="run the statement again"):
        store.write("data/t/one", write_half)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_every_folder_of_a_new_file_is_synced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store = LocalStore(tmp_path)
    write_text(store, "data/t/one", b"1")
    assert synced == [str(tmp_path / "data/t/one.tmp")], "the bytes, before the file has its name"
    store.sync()
    assert set(synced[1:]) == {str(tmp_path), str(tmp_path / "data"), str(tmp_path / "data/t")}
    store.sync()
    assert len(synced) == 4, "nothing is left to do"


def test_process_durability_syncs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: pytest.fail("synced"))
    store = LocalStore(tmp_path, "process")
    write_text(store, "data/t/one", b"1")
    store.sync()


def test_the_system_writes_a_large_file_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[int, int]] = []

    def begin(descriptor: int, start: int, size: int, flags: int) -> int:
        assert os.fstat(descriptor).st_size == start + size
        begun.append((start, size))
        return -1  # what it returns says nothing

    monkeypatch.setattr(store_module, "_sync_file_range", lambda: begin)
    pieces = [bytes([number]) * 700_000 for number in range(4)]

    def write_to(sink: pa.NativeFile) -> None:
        for piece in pieces:
            assert sink.write(piece) == len(piece)

    for durability in ("full", "process"):
        store = LocalStore(tmp_path / durability, durability)
        assert store.write("data/a/large", write_to) == 2_800_000
        with store.open_input("data/a/large") as source:
            assert source.read() == b"".join(pieces)
    assert begun == [(0, 1_400_000), (1_400_000, 1_400_000)]  # of the durable one alone
    begun.clear()
    write_text(LocalStore(tmp_path / "small"), "data/a/small", b"x" * 1000)
    assert not begun


def test_a_read_only_store_writes_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, read_only=True)
    with pytest.raises(ReadOnly):
        write_text(store, "data/t/one", b"1")
    with pytest.raises(ReadOnly):
        store.delete("data/t/one")
    assert list(tmp_path.iterdir()) == []


def test_a_fork_while_names_are_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child of a fork must not wait for a lock that a thread of the parent held."""
    store, amid = LocalStore(tmp_path), threading.Event()
    store.write("data/a", lambda sink: sink.write(b"a"))

    def slow(folder: str) -> None:
        if threading.current_thread().name == "slow":
            amid.set()
            time.sleep(1)

    monkeypatch.setattr("olapdb.storage.store.flush_folder", slow)
    thread = threading.Thread(name="slow", target=store.sync)
    thread.start()
    assert amid.wait(60)
    child = multiprocessing.get_context("fork").Process(target=store.sync)
    child.start()
    thread.join()
    child.join(60)
    child.kill()
    assert child.exitcode == 0
