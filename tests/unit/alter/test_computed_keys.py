"""A key may be a MATERIALIZED column. Columns that it is computed from then also place a row."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import CannotUpdateColumn
from olapdb.maintenance.check import check_database

pytestmark = pytest.mark.feature("schema", "engines")

TABLES = {
    "order": "MergeTree ORDER BY twice",
    "an expression of it": "MergeTree ORDER BY intDiv(twice, 2)",
    "partition": "MergeTree PARTITION BY twice % 3 ORDER BY k",
    "version": "ReplacingMergeTree(twice) ORDER BY k",
}
STATEMENTS = {
    "update": "ALTER TABLE t UPDATE d = 100 - d WHERE k % 3 = 0",
    "of what it hangs on through another": "UPDATE t SET e = 1 WHERE k = 1",
    "clear": "ALTER TABLE t CLEAR COLUMN d",
}


@pytest.mark.parametrize("engine", TABLES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_a_key_is_computed_from_is_not_updated(engine: str, statement: str) -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (k UInt32, d UInt32, e UInt32, half UInt32 MATERIALIZED e + d,"
            f" twice UInt32 MATERIALIZED half * 2, free UInt32) ENGINE = {TABLES[engine]}"
        )
        connection.execute("INSERT INTO t SELECT number, number % 7, 0, 0 FROM numbers(50)")
        before = connection.execute("SELECT *, twice FROM t ORDER BY k").fetchall()
        with pytest.raises(CannotUpdateColumn, match=r"twice.*is computed from"):
            connection.execute(STATEMENTS[statement])
        assert connection.execute("SELECT *, twice FROM t ORDER BY k").fetchall() == before
        connection.execute("ALTER TABLE t UPDATE free = 7 WHERE 1")
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
