"""A column in place of a constant is refused in a query of a user, not in a stored definition."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import IllegalColumn

pytestmark = pytest.mark.feature("functions")


def test_stored_definitions_go_on_working() -> None:
    """A warehouse may have them from before ClickHouse's rule was kept."""
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (k UInt8, s String, sep String, parts Array(String) DEFAULT extractAll(s, sep),"
            " wide String MATERIALIZED leftPad(s, 5, sep), CONSTRAINT c CHECK extract(s, s) = s)"
            " ENGINE = MergeTree ORDER BY (k, extract(s, sep))"
        )
        connection.execute("CREATE TABLE t (k UInt8, p Array(String)) ORDER BY k")
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO t AS SELECT k, splitByChar(sep, s) AS p FROM s"
        )
        connection.execute("INSERT INTO s (k, s, sep) VALUES (1, 'a', 'a'), (2, 'b', 'b')")
        connection.execute("INSERT INTO s (k, s, sep) VALUES (3, 'c', 'd')")
        connection.execute("OPTIMIZE TABLE s FINAL")
        assert connection.execute("SELECT k, parts, wide FROM s ORDER BY k").fetchall() == [
            (1, ["a"], "aaaaa"),
            (2, ["b"], "bbbbb"),
            (3, [], "ddddc"),
        ]
        assert connection.execute("SELECT p FROM t ORDER BY k").fetchall() == [
            (["", ""],),
            (["", ""],),
            (["c"],),
        ]
        with pytest.raises(IllegalColumn, match="Argument 1 of function splitByChar"):
            connection.execute("SELECT splitByChar(sep, s) FROM s")
        separated = connection.execute("SELECT splitByString(sep, s) FROM s WHERE k = 1").fetchall()
        assert separated == [(["", ""],)]
