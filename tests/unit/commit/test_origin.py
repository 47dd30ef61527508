"""What a commit keeps of the statement that made it, and what its rewritten parts follow."""

from __future__ import annotations

import pytest

from olapdb.commit.origin import STATEMENT_CHARACTERS_MAX
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import VIEW, add, make, rows

pytestmark = pytest.mark.feature("commits")

LONG = f"/* {'x' * 10_000} */"
STATEMENTS = (
    "INSERT INTO events VALUES ('2024-01-02', 'b', 2, 2)",
    "DELETE FROM events WHERE kind = 'b'",
    "ALTER TABLE events UPDATE amount = 7 WHERE kind = 'a'",
    "ALTER TABLE events DROP PARTITION 202402",
    "ALTER TABLE events COMMENT COLUMN kind 'of it'",
    "SYSTEM REPLAY VIEW daily_mv STALE",
    "SYSTEM RECONCILE VIEW daily_mv",
    "DETACH VIEW daily_mv",
    "DROP VIEW daily_mv",
    VIEW,
    "SYSTEM BACKFILL VIEW daily_mv",
    "OPTIMIZE TABLE events FINAL",
    "TRUNCATE TABLE events",
    "CREATE TABLE other (a UInt8) ORDER BY a",
    "DROP TABLE other",
)


def test_every_statement_s_text_is_cut_at_the_same_length(connection: Connection) -> None:
    make(connection)
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-02-01", "a", 1, 1))
    newest = "SELECT max(number) FROM system.snapshots"
    for statement in STATEMENTS:
        ((before,),) = rows(connection, newest)
        connection.execute(f"{statement} {LONG}")
        kept = rows(
            connection,
            f"SELECT DISTINCT length(statement) FROM system.snapshots WHERE number > {before}",
        )
        assert kept == [(STATEMENT_CHARACTERS_MAX,)], statement
        told = rows(connection, "SELECT max(length(statement)) FROM system.view_invalidations")
        assert told[0][0] <= STATEMENT_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("statement", "inline"),
    [
        ("DELETE FROM t WHERE k = 1", True),
        ("ALTER TABLE t UPDATE v = 'y' WHERE k = 1", True),
        ("ALTER TABLE t UPDATE v = repeat('y', 2000) WHERE k = 1", False),
    ],
)
def test_a_rewritten_part_stays_in_the_catalog_up_to_the_table_s_limit(
    connection: Connection, statement: str, inline: bool
) -> None:
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(
        "CREATE TABLE t (k UInt8, v String) ORDER BY k SETTINGS inline_bytes_max = 1000"
    )
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x')")
    connection.execute(statement)
    ((path,),) = rows(connection, "SELECT path FROM system.parts WHERE table = 't' AND active")
    assert (path == "") == inline
