"""Rows deleted from the target of a chained view after a replay above gave the same rows again."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("replay", "changes")

TABLES = (
    "CREATE TABLE s (p UInt8, k UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY k",
    "CREATE TABLE t (p UInt8, k UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY k",
    "CREATE TABLE u (k UInt8, n UInt64) ENGINE = SummingMergeTree PARTITION BY k % 2 ORDER BY k",
    "CREATE MATERIALIZED VIEW v TO t AS SELECT p, k FROM s",
    "CREATE MATERIALIZED VIEW w TO u AS SELECT k, count() AS n FROM t WHERE k < 9 GROUP BY k",
    "INSERT INTO s VALUES (0, 1), (0, 2), (1, 1), (1, 9)",
    "INSERT INTO s VALUES (1, 2), (2, 9)",
)
DELETIONS = (
    "ALTER TABLE u DROP PARTITION 1",
    "ALTER TABLE u DETACH PARTITION 1",
    "DELETE FROM u WHERE k = 1",
    "ALTER TABLE u DELETE WHERE k = 1",
    "DELETE FROM u WHERE 1",
)


@pytest.mark.parametrize("deletion", DELETIONS)
@pytest.mark.parametrize(
    "replays",
    [
        ("SYSTEM REPLAY VIEW v",),
        ("SYSTEM REPLAY VIEW v PARTITION 1",),
        ("SYSTEM REPLAY VIEW v", "SYSTEM REPLAY VIEW w PARTITION 0"),
        ("SYSTEM REPLAY VIEW v", "OPTIMIZE TABLE t FINAL", "SYSTEM REPLAY VIEW v PARTITION 0"),
    ],
    ids=["all", "partition", "own slice", "merged"],
)
def test_the_view_has_lost_its_rows(replays: tuple[str, ...], deletion: str) -> None:
    with olapdb.connect() as connection:

        def status() -> tuple[str, str]:
            found = connection.execute("SELECT verdict, mend FROM system.views WHERE name = 'w'")
            return tuple(found.fetchall()[0])

        connection.execute("SYSTEM STOP MERGES")
        for text in (*TABLES, *replays):
            connection.execute(text)
        assert status()[0] == "covered"  # the rows are equal, so none of its own is stale
        connection.execute(deletion)
        assert status()[0] in ("partial", "stale")
        for _ in range(3):
            if status()[1]:
                connection.execute(status()[1])
        assert status() == ("proven", "")
        rows = connection.execute("SELECT k, sum(n) FROM u GROUP BY k ORDER BY k").fetchall()
        assert rows == [(1, 2), (2, 2)]
