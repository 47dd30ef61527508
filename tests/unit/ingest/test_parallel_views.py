"""parallel_view_processing = 1 gives the same commit, the same bytes and the same failures."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ThrowIfNonZero
from olapdb.maintenance.check import check_database
from olapdb.model.schema import Table

pytestmark = pytest.mark.feature("insert")

VIEWS = 4
BELOW = """
    CREATE MATERIALIZED VIEW below_{0} TO sums AS
    SELECT concat('below ', kind) AS kind, sum(n) AS n FROM shared GROUP BY kind
"""


def build(connection: Connection) -> None:
    """Create four views on a source: two write one table, which has two views of its own."""
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(
        "CREATE TABLE s (day Date, kind String, v Int64) ENGINE = MergeTree"
        " PARTITION BY toYYYYMM(day) ORDER BY day"
    )
    for name in ("shared", "sums"):
        connection.execute(
            f"CREATE TABLE {name} (kind String, n Int64) ENGINE = SummingMergeTree ORDER BY kind"
        )
    connection.execute(
        "CREATE TABLE plain (day Date, v Int64) ENGINE = MergeTree ORDER BY (day, v)"
    )
    for number, query in enumerate(
        (
            "TO shared AS SELECT kind, sum(v) AS n FROM s GROUP BY kind",
            "TO plain AS SELECT day, v FROM s WHERE v % 2 = 0",
            "TO shared AS SELECT concat('x', kind) AS kind, toInt64(count()) AS n FROM s GROUP BY kind",
            "TO sums AS SELECT kind, sum(throwIf(v = 666, 'six') + v) AS n FROM s GROUP BY kind",
        )
    ):
        connection.execute(f"CREATE MATERIALIZED VIEW v{number} {query}")
    for number in range(2):
        connection.execute(BELOW.format(number))


def work(connection: Connection, *, parallel: bool, blocks: int = 6) -> None:
    connection.execute(
        f"SET parallel_view_processing = {int(parallel)}, max_insert_block_size = 50"
    )
    drawn = random.Random(7)
    for _ in range(blocks):
        values = ", ".join(
            f"('2024-0{drawn.randint(1, 3)}-01', '{drawn.choice('abcd')}', {drawn.randint(0, 99)})"
            for _ in range(120)
        )
        connection.execute(f"INSERT INTO s VALUES {values}")
    connection.execute(
        "INSERT INTO s SETTINGS max_insert_block_size = 1000000 SELECT toDate('2024-01-01') + number % 70,"
        " toString(number % 11), number % 600 FROM numbers(150000)"
    )


def content(connection: Connection) -> list[Any]:
    """Return all that the catalog holds except ids and times."""
    snapshot = connection.database.services.catalog.snapshot()
    names = {item.id: item.name for item in snapshot.objects()}
    found: list[Any] = []
    for table in snapshot.objects():
        if not isinstance(table, Table):
            coverage = snapshot.coverage(table.id)
            found.append((table.name, coverage.everywhere, dict(coverage.by_partition)))
            continue
        for part in snapshot.parts(table.id):
            rows: object
            made_of = [
                (names[c.view_id], c.source_partition, c.blocks, c.rows) for c in part.contributions
            ]
            rows = bytes(snapshot.inline_rows(part)) if part.inline else part.rows
            if part.path:  # compare rows, since the file's footer holds the part's id
                path = Path(connection.database.location) / part.path
                rows = pq.ParquetFile(path).read().to_pydict()
            found.append((table.name, part.name, part.rows, rows, made_of))
        blocks = [(b.number, b.commit, b.rows, b.kind) for b in snapshot.blocks(table.id)]
        found.append((table.name, blocks))
    return found


@pytest.fixture(params=[262_144, 0], ids=["inline", "files"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    return tmp_path, request.param


def run(folder: Path, inline: int, *, parallel: bool) -> list[Any]:
    with olapdb.connect(folder, settings={"inline_bytes_max": inline}) as connection:
        build(connection)
        work(connection, parallel=parallel)
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
        return content(connection)


def test_the_same_commits_to_the_byte(folder: tuple[Path, int]) -> None:
    path, inline = folder
    one_by_one = run(path / "a", inline, parallel=False)
    at_once = run(path / "b", inline, parallel=True)
    assert at_once == one_by_one
    assert len(one_by_one) > 50


@pytest.mark.parametrize("ignored", [0, 1])
def test_failures_are_the_same(tmp_path: Path, ignored: int) -> None:
    """Two views fail. The error names the first by name, and no file stays behind."""
    seen = []
    for parallel in (False, True):
        folder = tmp_path / str(parallel)
        with olapdb.connect(folder, settings={"inline_bytes_max": 0}) as connection:
            build(connection)
            connection.execute(
                "CREATE MATERIALIZED VIEW u TO plain AS SELECT day, throwIf(v = 666, 'you') + v AS v FROM s"
            )
            work(connection, parallel=parallel, blocks=1)
            connection.execute(f"SET materialized_views_ignore_errors = {ignored}")
            insert = "INSERT INTO s VALUES ('2024-01-01', 'a', 666), ('2024-01-01', 'b', 2)"
            if ignored:
                connection.execute(insert)
                notes = (
                    "SELECT view, cause, rows, keys[1] FROM system.view_invalidations ORDER BY view"
                )
                message = str(connection.execute(notes).fetchall())
            else:
                with pytest.raises(ThrowIfNonZero, match="you") as raised:
                    connection.execute(insert)
                message = str(raised.value)
            log = connection.execute(
                "SELECT view_name, written_rows, exception FROM system.query_views_log"
            ).fetchall()
            services = connection.database.services
            assert check_database(services.catalog, services.store) == []
            files = {str(p.relative_to(folder)) for p in (folder / "data").rglob("*.parquet")}
            assert files == set(services.catalog.referenced_paths())
            seen.append((message, content(connection), [tuple(row) for row in log]))
    assert seen[0] == seen[1]


def test_threads_are_bounded_by_max_threads(tmp_path: Path) -> None:
    with olapdb.connect(settings={"max_threads": 1}) as connection:
        build(connection)
        work(connection, parallel=True, blocks=1)
        assert connection.execute("SELECT count() FROM s").fetchall()[0][0] == 150120
