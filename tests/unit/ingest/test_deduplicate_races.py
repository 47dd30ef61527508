"""Two INSERTs of one key: exactly one lands, whatever commits between lookup and commit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
import olapdb.dml.insert_writer as insert_module
from olapdb.dbapi.connection import Connection
from olapdb.errors import Aborted, OffsetHole
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit, Committed
from olapdb.model.requirements import KeysAreNew, OffsetIs, Requirement
from olapdb.result import InsertedRows
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("insert", "concurrency")

SOURCE = """
    CREATE TABLE events (id Int64, n Int64) ENGINE = MergeTree PARTITION BY n % 2 ORDER BY n
    SETTINGS deduplicate_by = 'id'
"""
TARGET = "CREATE TABLE counts (k Int64, n UInt64) ENGINE = SummingMergeTree ORDER BY k"
VIEW = """
    CREATE MATERIALIZED VIEW counts_mv TO counts AS
    SELECT id % 10 AS k, count() AS n FROM events GROUP BY k
"""


def make(connection: Connection, source: str = SOURCE) -> None:
    connection.execute("SYSTEM STOP MERGES")
    for text in (source, TARGET, VIEW):
        connection.execute(text)


def add(connection: Connection, *ids: int, **more: object) -> InsertedRows:
    return connection.insert("events", {"id": list(ids), "n": list(ids)}, **more)  # type: ignore[arg-type]


def check(connection: Connection, ids: list[int]) -> None:
    """Require these ids once each, in the table and in the view's target, and a sound database."""
    assert rows(connection, "SELECT id FROM events ORDER BY id") == [(i,) for i in ids]
    assert rows(connection, "SELECT sum(n) FROM counts") == [(len(ids),)]
    assert rows(connection, "SELECT verdict FROM system.views") == [("covered",)]
    assert set(rows(connection, "SELECT DISTINCT k FROM counts")) == {(i % 10,) for i in ids}
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


class Race:
    """A connection, and functions to call between its lookups and its commits."""

    def __init__(self, folder: Path) -> None:
        self.first = olapdb.connect(folder / "w")
        make(self.first)
        self.commits = 0
        self.lost: type[Requirement] | None = None
        """A type of requirement to omit from commits, to test what it prevents."""

    def run(
        self, work: Callable[[Connection], InsertedRows], *meanwhile: Callable[[], object]
    ) -> InsertedRows:
        """Run `work`, calling one function of `meanwhile` just before each of its first commits."""
        catalog = self.first.database.services.catalog
        apply, waiting = catalog.apply, list(meanwhile)
        working = threading.get_ident()
        busy = [False]

        def meddled(commit: Commit) -> Committed:
            if threading.get_ident() == working and not busy[0]:
                self.commits += 1
                commit = self._without_lost(commit)
                if waiting:
                    busy[0] = True
                    waiting.pop(0)()
                    busy[0] = False
            return apply(commit)

        catalog.apply = meddled  # type: ignore[method-assign]
        try:
            return work(self.first)
        finally:
            del catalog.apply

    def _without_lost(self, commit: Commit) -> Commit:
        if self.lost is None:
            return commit
        kept = tuple(r for r in commit.requirements if not isinstance(r, self.lost))
        return replace(commit, requirements=kept)


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    made = Race(tmp_path)
    yield made
    made.first.close()


def test_the_same_key_between_look_and_commit(race: Race) -> None:
    done = race.run(lambda c: add(c, 1, 2, 3), lambda: add(race.first, 2, 9))
    assert (done, done.duplicates_dropped) == (2, 1)
    assert race.commits == 2
    check(race.first, [1, 2, 3, 9])


def test_all_of_it_between_look_and_commit(race: Race) -> None:
    done = race.run(lambda c: add(c, 1, 2), lambda: add(race.first, 2), lambda: add(race.first, 1))
    assert (done, done.duplicates_dropped) == (0, 2)
    check(race.first, [1, 2])


def test_inserts_of_other_keys_are_no_conflict(race: Race) -> None:
    assert race.run(lambda c: add(c, 1, 2), lambda: add(race.first, *range(10, 30))) == 2
    assert race.commits == 1
    check(race.first, [1, 2, *range(10, 30)])


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
def test_a_block_of_several_loses_rows(
    race: Race, kept_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insert_module, "BLOCKS_IN_MEMORY_BYTES_MAX", kept_bytes)
    race.first.execute("SET max_insert_block_size = 3, inline_bytes_max = 0")
    done = race.run(lambda c: add(c, *range(9)), lambda: add(race.first, 3, 4, 5, 7, 20))
    assert (done, done.duplicates_dropped) == (5, 4)
    check(race.first, [*range(9), 20])


def test_a_view_and_a_key_that_come_meanwhile(race: Race) -> None:
    race.first.execute("CREATE TABLE sums (n Int64) ENGINE = SummingMergeTree ORDER BY tuple()")
    view = "CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT sum(events.n) AS n FROM events"
    done = race.run(
        lambda c: add(c, 1, 2), lambda: race.first.execute(view), lambda: add(race.first, 2)
    )
    assert (done, done.duplicates_dropped) == (1, 1)
    assert rows(race.first, "SELECT sum(n) FROM sums") == [(3,)]
    assert rows(race.first, "SELECT id FROM events ORDER BY id") == [(1,), (2,)]


def test_keys_that_are_forgotten_meanwhile(race: Race) -> None:
    add(race.first, 1)
    done = race.run(lambda c: add(c, 1, 2), lambda: race.first.execute("TRUNCATE TABLE events"))
    assert (done, done.duplicates_dropped) == (2, 0)
    assert rows(race.first, "SELECT id FROM events ORDER BY id") == [(1,), (2,)]


def test_keys_that_are_forgotten_while_a_stream_is_drawn(race: Race) -> None:
    """A stream cannot be read twice, and its dropped rows are no longer in memory."""
    add(race.first, 1)
    stream = pa.table({"id": [1, 2], "n": [1, 2]}).to_reader()
    with pytest.raises(Aborted, match="run it again"):
        race.run(
            lambda c: c.insert("events", stream),
            lambda: race.first.execute("TRUNCATE TABLE events"),
        )
    assert rows(race.first, "SELECT count() FROM events") == [(0,)]
    assert add(race.first, 1, 2) == 2


@pytest.mark.parametrize("how", ["insert", "executemany"])
def test_a_column_that_comes_meanwhile(race: Race, how: str) -> None:
    def work(connection: Connection) -> InsertedRows:
        if how == "insert":
            return connection.insert("events", pa.table({"id": [1], "n": [7]}))
        cursor = connection.executemany("INSERT INTO events (id, n) VALUES (?, ?)", [(1, 7)])
        return InsertedRows(cursor.rowcount)

    added = "ALTER TABLE events ADD COLUMN m Int64 DEFAULT n + 1"
    assert race.run(work, lambda: race.first.execute(added)) == 1
    assert rows(race.first, "SELECT id, n, m FROM events") == [(1, 7, 8)]


def test_a_truncate_that_takes_nothing_from_the_insert(race: Race) -> None:
    add(race.first, 1)
    assert race.run(lambda c: add(c, 2), lambda: race.first.execute("TRUNCATE TABLE events")) == 1
    assert rows(race.first, "SELECT id FROM events") == [(2,)]


def test_the_same_delivery_twice_at_once(race: Race) -> None:
    def deliver() -> InsertedRows:
        return add(race.first, 1, 2, token="batch-1", offsets={"s": (0, 2)})

    done = race.run(lambda _: deliver(), deliver)
    assert (done, done.duplicate, done.duplicates_dropped) == (0, True, 0)
    check(race.first, [1, 2])
    assert rows(race.first, "SELECT rows_dropped FROM system.deduplication") == [(0,)]


def test_offsets_that_move_meanwhile(race: Race) -> None:
    done = race.run(
        lambda c: add(c, 1, 2, offsets={"s": (0, 2)}),
        lambda: add(race.first, 1, 2, 3, offsets={"s": (0, 3)}),
    )
    assert done.duplicate
    with pytest.raises(OffsetHole, match="stands at 5, the INSERT goes from 3 to 6"):
        race.run(
            lambda c: add(c, 4, offsets={"s": (3, 6)}),
            lambda: add(race.first, 4, 5, offsets={"s": (3, 5)}),
        )
    check(race.first, [1, 2, 3, 4, 5])


def test_each_requirement_is_needed(race: Race) -> None:
    """Without each requirement a race does harm, which shows that the tests above can fail."""
    race.lost = KeysAreNew
    race.run(lambda c: add(c, 1), lambda: add(race.first, 1))
    assert rows(race.first, "SELECT count() FROM events WHERE id = 1") == [(2,)]
    # The key 1 is known, so its row is dropped. Then TRUNCATE removes the stored row and the key.
    race.run(lambda c: add(c, 1, 2), lambda: race.first.execute("TRUNCATE TABLE events"))
    assert rows(race.first, "SELECT id FROM events") == [(2,)]
    race.lost = OffsetIs
    race.run(
        lambda c: add(c, 6, 7, offsets={"s": (0, 2)}),
        lambda: add(race.first, 8, 9, offsets={"s": (1, 3)}),
    )
    # Rows up to position 3 are stored, some of them twice, but the stream's position is 2.
    assert rows(race.first, "SELECT position FROM system.source_offsets") == [(2,)]


def test_many_threads_deliver_the_same_keys(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        make(connection)
        total = [0] * 4

        def deliver(number: int) -> None:
            for start in range(0, 300, 15):
                done = add(connection, *range(start, start + 25))
                total[number] += done + done.duplicates_dropped

        threads = [threading.Thread(target=deliver, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert total == [500] * 4
        check(connection, list(range(310)))
        assert rows(connection, "SELECT keys_held, rows_dropped FROM system.deduplication") == [
            (310, 2_000 - 310)
        ]


DELIVER = """
    import random, sys
    import olapdb
    folder, seed = sys.argv[1], int(sys.argv[2])
    chance = random.Random(seed)
    with olapdb.connect(folder) as connection:
        for _ in range(40):
            start = chance.randrange(0, 280)
            ids = list(range(start, start + 20))
            connection.insert("events", {"id": ids, "n": ids})
        connection.insert("events", {"id": list(range(300)), "n": list(range(300))})
"""


def test_processes_deliver_the_same_keys(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    with olapdb.connect(folder) as connection:
        make(connection)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(DELIVER), str(folder), str(seed)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(3)
    ]
    for process in writers:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error[-3000:]
    with olapdb.connect(folder) as connection:
        check(connection, list(range(300)))
        assert rows(connection, "SELECT keys_held, rows_dropped FROM system.deduplication") == [
            (300, 3 * (40 * 20 + 300) - 300)
        ]


# --- killed


KILLED = """
    import sys
    import olapdb
    from olapdb.runtime.failpoints import kill_at
    from tests.unit.ingest.test_deduplicate_races import batches
    folder, stage, count = sys.argv[1:]
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    kill_at(stage, int(count))
    for number, ids in enumerate(batches()):
        inline = 0 if number % 2 else 262144
        connection.execute(f"SET max_insert_block_size = 7, inline_bytes_max = {inline}")
        connection.insert("events", {"id": ids, "n": ids}, offsets={"s": (number, number + 1)})
        print("acknowledged", number, flush=True)
"""
STAGES = [
    "store.written",
    "store.renamed",
    "catalog.checked",
    "catalog.before_commit",
    "catalog.committed",
    "insert.source_staged",
    "insert.view_fired",
    "insert.staged",
    "insert.before_commit",
    "insert.committed",
]


def batches() -> list[list[int]]:
    """Return six batches that each repeat the second half of the batch before."""
    return [list(range(10 * i, 10 * i + 20)) for i in range(6)]


@pytest.mark.parametrize("stage", STAGES)
def test_killed_within_an_insert(tmp_path: Path, stage: str) -> None:
    folder = tmp_path / "w"
    with olapdb.connect(folder) as connection:
        make(connection)
    count = random.Random(stage).randint(1, 5)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), stage, str(count)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    acknowledged = done.stdout.count("acknowledged")
    with olapdb.connect(folder) as connection:
        there = rows(connection, "SELECT count() FROM events")[0][0]
        positions = rows(connection, "SELECT position FROM system.source_offsets")
        landed = int(positions[0][0]) if positions else 0
        assert landed in (acknowledged, acknowledged + 1)
        assert there == (10 * landed + 10 if landed else 0)
        for number, ids in enumerate(batches()):
            again = add(connection, *ids, offsets={"s": (number, number + 1)})
            assert again.duplicate == (number < landed)
        services = connection.database.services
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == []
        assert rows(connection, "SELECT id FROM events ORDER BY id") == [(i,) for i in range(70)]
        assert rows(connection, "SELECT sum(n) FROM counts") == [(70,)]
        assert rows(connection, "SELECT keys_held FROM system.deduplication") == [(70,)]
