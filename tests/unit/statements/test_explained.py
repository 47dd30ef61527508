"""EXPLAIN as a document, and as the source of a SELECT."""

from __future__ import annotations

import json

import pytest

import olapdb

pytestmark = pytest.mark.feature("select")


@pytest.fixture
def connection() -> olapdb.Connection:
    connection = olapdb.connect()
    connection.execute("CREATE TABLE t (a UInt8) ORDER BY a")
    connection.execute("INSERT INTO t SELECT number FROM numbers(10)")
    return connection


def test_json_is_one_document_of_the_plan(connection: olapdb.Connection) -> None:
    query = "EXPLAIN json = 1, header = 1, indexes = 1 SELECT sum(a) FROM t WHERE a IN (SELECT 1)"
    (text,) = connection.execute(query).fetchone()
    (document,) = json.loads(text)
    plan = document["Plan"]
    assert plan["Node Type"] == "Aggregating"
    assert plan["Header"] == [{"Name": "sum(a)", "Type": "UInt64"}]
    (scan,) = plan["Plans"]
    assert (scan["Node Type"], scan["Description"]) == ("ReadFromMergeTree", "default.t")
    assert "Parts: 1 | Granules: 1" in scan["Details"]
    assert [node["Node Type"] for node in scan["Subqueries"]] == ["Expression"]


def test_the_rows_of_an_explain_are_those_of_the_moment(connection: olapdb.Connection) -> None:
    query = "SELECT rows FROM (EXPLAIN ESTIMATE SELECT * FROM t)"
    assert connection.execute(query).fetchall() == [(10,)]
    connection.execute("INSERT INTO t SELECT number FROM numbers(5)")
    assert connection.execute(query).fetchall() == [(15,)]
    none = "SELECT rows FROM (EXPLAIN ESTIMATE SELECT * FROM numbers(3))"
    assert connection.execute(none).fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS SELECT * FROM (EXPLAIN SELECT 1)",
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY explain AS SELECT * FROM (EXPLAIN SELECT 1)",
        "INSERT INTO t SELECT 1 FROM (EXPLAIN SELECT 1)",
        "SELECT formatQuery('SELECT * FROM (EXPLAIN SELECT 1)')",
    ],
)
def test_an_explain_is_not_stored(statement: str, connection: olapdb.Connection) -> None:
    with pytest.raises(olapdb.NotSupportedError, match="EXPLAIN"):
        connection.execute(statement)
