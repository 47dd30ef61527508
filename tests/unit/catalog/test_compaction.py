"""The history of a busy warehouse: spans of blocks, a short log, a small file."""

from __future__ import annotations

import contextlib
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.catalog.sqlite import compaction, free_space
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.catalog.sqlite.compaction import BlockSpan, joined_spans
from olapdb.errors import SnapshotTooOld
from olapdb.model.changes import AddBlock, AddPart, Commit, Invalidate, RemoveParts
from olapdb.model.part import BlockRange, NewBlock
from olapdb.model.view_state import Invalidation
from tests.harness.commits import create_all, insert, make_part, make_table
from tests.unit.catalog.conftest import Clock

pytestmark = pytest.mark.feature("commits")

HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BLOCKS_KEPT_MAX", 4)
    monkeypatch.setattr(compaction, "BLOCKS_A_STEP", 7)


def filled(catalog: SqliteCatalog, clock: Clock, blocks: int, step_ms: int = 100) -> str:
    lease = catalog.open_lease("writer")
    create_all(catalog)
    for _ in range(blocks):
        clock.ms += step_ms
        insert(catalog, lease)
    return lease


def rows_of(catalog: SqliteCatalog, table: str) -> int:
    with catalog.connections.reading() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10 * HOUR)), max_size=60),
    st.integers(1, 30),
)
def test_spans_keep_blocks_rows_and_times(steps: list[tuple[int, int]], cut: int) -> None:
    """In any order of joining each block is in one span, its time known to an eighth of its age, and
    spans can be joined further."""
    number = ms = 0
    blocks = []
    for hole, later in steps:
        number, ms = number + 1 + hole, ms + later
        blocks.append(BlockSpan(number, number, number, number, 1, ms, ms))
    now = ms + HOUR
    spans = joined_spans((*joined_spans(blocks[:cut], now), *blocks[cut:]), now)
    assert sum(span.rows for span in spans) == len(blocks)
    assert sum(span.count_in(BlockRange(1, 1 << 40)) for span in spans) == len(blocks)
    assert all(a.last < b.first for a, b in pairwise(spans))
    for span in spans:
        inside = [b for b in blocks if span.first <= b.first <= span.last]
        assert (span.oldest_ms, span.newest_ms) == (inside[0].oldest_ms, inside[-1].newest_ms)
        limit = max(compaction.SPAN_MS_MIN, (now - span.newest_ms) // compaction.SHARE_OF_AGE)
        assert span.newest_ms - span.oldest_ms <= limit


def test_spans_are_as_many_as_the_logarithm_of_the_age() -> None:
    spans: list[BlockSpan] = []
    counts = []
    for number in range(1, 40_001):
        spans.append(BlockSpan(number, number, number, number, 1, number * 10_000, number * 10_000))
        if number % 1_000 == 0:
            spans = joined_spans(spans, number * 10_000)
            counts.append(len(spans))
    assert counts[-1] < counts[9] + 3 * compaction.SHARE_OF_AGE
    assert spans[-1].last == 40_000


def test_what_is_asked_of_blocks_does_not_change(catalog: SqliteCatalog, clock: Clock) -> None:
    lease = filled(catalog, clock, 40)
    before = catalog.snapshot()
    blocks = before.blocks("s")
    spans = [BlockRange(1, 40), BlockRange(7, 19), BlockRange(40, 40), BlockRange(41, 50)]
    known = [before.block_span("s", span) for span in spans]
    clock.ms += HOUR
    catalog.purge_history(clock.ms - 1, commits_max=5)
    assert rows_of(catalog, "blocks") == 2, "the newest block of s and of t"
    assert rows_of(catalog, "block_spans") < 12
    after = catalog.snapshot()
    assert after.number == before.number
    assert after.next_block(make_table("s")) == 41
    for (count, ms), (known_count, known_ms) in zip(
        (after.block_span("s", span) for span in spans), known, strict=True
    ):
        assert count == known_count
        assert known_ms - compaction.SPAN_MS_MIN <= ms <= known_ms
    listed = after.blocks("s")
    assert [b.number for b in listed] == sorted(b.number for b in listed)
    assert listed[-1] == blocks[-1]
    assert sum(b.rows for b in listed) == sum(b.rows for b in blocks)
    assert {n for b in listed for n in range(b.range.first, b.range.last + 1)} == set(range(1, 41))
    assert after.coverage("v").everywhere == (BlockRange(1, 40),)
    insert(catalog, lease)
    assert catalog.snapshot().blocks("s")[-1].number == 41
    assert next(c.number for c in catalog.commits()) >= before.number - 5


def test_a_pinned_snapshot_holds_compaction_back(catalog: SqliteCatalog, clock: Clock) -> None:
    lease = filled(catalog, clock, 10)
    with catalog.pinned() as pinned:
        for _ in range(20):
            clock.ms += 100
            insert(catalog, lease)
        clock.ms += HOUR
        catalog.purge_history(clock.ms - 1, commits_max=5)
        assert pinned.next_block(make_table("s")) == 11
        assert len(pinned.blocks("s")) <= 10
        assert pinned.block_span("s", BlockRange(1, 99))[0] == 10
        assert rows_of(catalog, "blocks") > 20
    catalog.purge_history(clock.ms - 1, commits_max=5)
    assert rows_of(catalog, "blocks") == 2
    assert catalog.snapshot().block_span("s", BlockRange(1, 99))[0] == 30


def test_an_unpinned_snapshot_says_that_it_is_too_old(catalog: SqliteCatalog, clock: Clock) -> None:
    lease = filled(catalog, clock, 10)
    old = catalog.snapshot()
    for _ in range(20):
        insert(catalog, lease)
    clock.ms += HOUR
    catalog.purge_history(clock.ms - 1, commits_max=5)
    with pytest.raises(SnapshotTooOld):
        old.next_block(make_table("s"))
    with pytest.raises(SnapshotTooOld):
        old.block_span("s", BlockRange(1, 5))


def test_blocks_on_which_a_view_failed_keep_their_rows(
    catalog: SqliteCatalog, clock: Clock
) -> None:
    lease = filled(catalog, clock, 10)
    note = Invalidation("v", None, "VIEW FAILED", "", "", 1, clock.ms)
    failed = insert(catalog, lease, more=(Invalidate(note),))
    for _ in range(10):
        insert(catalog, lease)
    clock.ms += HOUR
    catalog.purge_history(clock.ms - 1, commits_max=5)
    single = [b for b in catalog.snapshot().blocks("s") if b.kind != "older"]
    assert next((b.number, b.commit) for b in single) == (11, failed.number)
    assert catalog.snapshot().next_block(make_table("s")) == 22


def test_a_small_warehouse_keeps_its_past(
    catalog: SqliteCatalog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "BLOCKS_KEPT_MAX", 100)
    filled(catalog, clock, 10)
    clock.ms += HOUR
    catalog.purge_history(clock.ms - 1, commits_max=100)
    assert len(catalog.snapshot(3).blocks("s")) == 1


def test_a_process_that_slept_past_a_vacuum_reads_anew(tmp_path: Path, clock: Clock) -> None:
    """Parts and objects dropped and purged meanwhile must not stay live in a reader's cache."""
    path = tmp_path / "c.sqlite"
    with (
        contextlib.closing(SqliteCatalog(path, clock_ms=clock)) as writer,
        contextlib.closing(SqliteCatalog(path, clock_ms=clock)) as sleeper,
    ):
        lease = filled(writer, clock, 3)
        known = sleeper.snapshot().parts("s")
        assert len(known) == 3
        ids = tuple(part.id for part in known)
        insert(writer, lease, more=(RemoveParts("s", ids),))
        clock.ms += HOUR
        writer.purge_parts(writer.dropped_parts(clock.ms, 10))
        assert sleeper.snapshot().parts("s") == writer.snapshot().parts("s")
        assert len(sleeper.snapshot().parts("s")) == 1


def grown(path: Path, clock: Clock, parts: int) -> SqliteCatalog:
    """Return a catalog with many parts, of which vacuum has purged all but one."""
    catalog = SqliteCatalog(path, clock_ms=clock)
    filled(catalog, clock, 1)
    for _ in range(parts // 50):
        block = NewBlock("s", 0)
        some = [make_part("s", path="", inline=True) for _ in range(50)]
        catalog.apply(
            Commit((), (AddBlock(block, 1), *(AddPart(one, b"rows") for one in some)), "X")
        )
        catalog.apply(Commit((), (RemoveParts("s", tuple(one.id for one in some)),), "X"))
    with catalog.connections.exclusive() as connection:  # incompressible bytes of that size
        connection.execute("UPDATE inline_rows SET data = randomblob(16000)")
    clock.ms += HOUR
    while gone := catalog.dropped_parts(clock.ms, 100):
        catalog.purge_parts(gone)
    return catalog


def size(path: Path) -> int:
    return path.stat().st_size + Path(f"{path}-wal").stat().st_size


@pytest.mark.parametrize("older", [False, True], ids=["new", "made without auto_vacuum"])
def test_space_is_given_back(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    monkeypatch.setattr(free_space, "SLACK_BYTES", 64 << 10)
    path = tmp_path / "catalog.sqlite"
    if older:
        SqliteCatalog(path).close()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA auto_vacuum = NONE")
            connection.execute("VACUUM")
    with contextlib.closing(grown(path, clock, 400)) as catalog:
        parts = catalog.snapshot().parts("s")
        before = size(path)
        assert before > 5 << 20
        assert catalog.release_space() > 1_000
        assert path.stat().st_size < before / 10, path.stat()
        assert size(path) < before / 10
        assert catalog.release_space() == 0, "what is free is left for the next rows"
        assert catalog.snapshot().parts("s") == parts
        with catalog.connections.reading() as connection:
            assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with contextlib.closing(SqliteCatalog(path)) as again:
        assert again.snapshot().parts("s") == parts


def test_a_reader_holds_the_log_and_nobody_waits(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "SLACK_BYTES", 64 << 10)
    path = tmp_path / "catalog.sqlite"
    with contextlib.closing(grown(path, clock, 100)) as catalog:
        with catalog.connections.consistent() as reader:
            count = reader.execute("SELECT count(*) FROM parts").fetchone()
            catalog.release_space()
            assert reader.execute("SELECT count(*) FROM parts").fetchone() == count
        insert(catalog, catalog.open_lease("w"))
