"""ALTER of indexes and constraints with IF EXISTS and IF NOT EXISTS, beside ClickHouse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("changes")

STATEMENTS = (
    "ADD INDEX i a TYPE minmax",
    "ADD INDEX i a TYPE minmax",
    "ADD INDEX IF NOT EXISTS i a TYPE bloom_filter",
    "ADD INDEX IF NOT EXISTS j a TYPE bloom_filter",
    "DROP INDEX nope",
    "DROP INDEX IF EXISTS nope",
    "DROP INDEX j",
    "ADD CONSTRAINT c CHECK a > 0",
    "ADD CONSTRAINT c CHECK a > 1",
    "ADD CONSTRAINT IF NOT EXISTS c CHECK a > 2",
    "ADD CONSTRAINT IF NOT EXISTS d CHECK a > 3",
    "DROP CONSTRAINT nope",
    "DROP CONSTRAINT IF EXISTS nope",
    "DROP CONSTRAINT d",
)


def outcome(run: Callable[[str], object], statement: str) -> tuple[str, str, int]:
    """Run the statement; return it with the error's name and code, "" and 0 if it succeeds."""
    try:
        run(statement)
    except (OracleError, olapdb.Error) as error:
        return statement, str(error.name), error.code
    return statement, "", 0


def test_if_exists_and_if_not_exists() -> None:
    create = "CREATE TABLE changed (a Int64) ENGINE = MergeTree ORDER BY a"
    with Oracle() as oracle, olapdb.connect() as connection:
        oracle.execute(create)
        connection.execute(create)
        for action in STATEMENTS:
            statement = f"ALTER TABLE changed {action}"
            assert outcome(connection.execute, statement) == outcome(oracle.execute, statement)
        found = connection.execute("SELECT name FROM system.data_skipping_indices").fetchall()
        assert found == [("i",)]
        (query,) = connection.execute(
            "SELECT create_table_query FROM system.tables WHERE name = 'changed'"
        ).fetchone()
        assert "CONSTRAINT c CHECK a > 0" in query
        assert "CONSTRAINT d" not in query


NESTED = (
    "UPDATE `x.a` = [5, 6] WHERE 1",
    "UPDATE `x.a` = [5, 6] WHERE k = 2",
    "UPDATE `x.a` = [5], `x.b` = ['q'] WHERE k = 2",
    "UPDATE `x.b` = [] WHERE k = 1",
)


def test_an_update_leaves_nested_arrays_of_one_length() -> None:
    """ClickHouse wraps the error of a mutation, so only its presence is compared."""
    statements = (
        "CREATE TABLE structured (k Int64, x Nested(a Int64, b String)) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO structured VALUES (1, [1], ['a']), (2, [1, 2], ['a', 'b'])",
    )
    with Oracle() as oracle, olapdb.connect() as connection:
        for action in NESTED:
            for run in (oracle.execute, connection.execute):
                run("DROP TABLE IF EXISTS structured")
                for statement in statements:
                    run(statement)
            change = f"ALTER TABLE structured {action}"
            theirs = outcome(oracle.execute, f"{change} SETTINGS mutations_sync = 2")
            ours = outcome(connection.execute, change)
            assert ours[1] == ("SIZES_OF_ARRAYS_DONT_MATCH" if theirs[1] else "")
            lines = "SELECT toString(x.a), toString(x.b) FROM structured ORDER BY k"
            assert connection.execute(lines).fetchall() == oracle.query(lines).rows
