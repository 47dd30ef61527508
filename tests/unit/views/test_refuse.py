"""Which definitions CREATE MATERIALIZED VIEW refuses, with reason and fix, and which it only
marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb import bind
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    BadArguments,
    CannotConvertType,
    DuplicateColumn,
    Error,
    QueryNotSupportedInMaterializedView,
    TableAlreadyExists,
    ThereIsNoColumn,
    TooDeepRecursion,
    TypeMismatch,
    UnknownTable,
    ViewNotProvable,
)
from olapdb.views.definition.kept_settings import QUERY_SETTINGS
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views", "provability")


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        for statement in (
            "CREATE TABLE s (k UInt64, g String, v Int64, ts DateTime) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE d (k UInt64, name String) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE summing (k UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE TABLE wide (k UInt64, g String, n UInt64) ENGINE = SummingMergeTree ORDER BY (k, g)",
            "CREATE TABLE total (n SimpleAggregateFunction(sum, UInt64), top SimpleAggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY tuple()",
            "CREATE TABLE states (k UInt64, u AggregateFunction(uniq, UInt64), m SimpleAggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY k",
            "CREATE TABLE plain (k UInt64, n UInt64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE plain_state (k UInt64, g AggregateFunction(groupArray, Int64)) ENGINE = AggregatingMergeTree ORDER BY k",
            "CREATE TABLE stored_tops (k UInt64, j UInt64, top AggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY (k, j)",
            "CREATE TABLE lowest (k UInt64, l SimpleAggregateFunction(min, String)) ENGINE = AggregatingMergeTree ORDER BY k",
            "CREATE VIEW window_on_s AS SELECT k FROM s",
        ):
            opened.execute(statement)
        yield opened


def create(connection: Connection, target: str, query: str) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW refused TO {target} AS {query}")


REFUSED = [
    # aggregates of no rows in a group that has rows: their default is a value for max and min
    ("states", "SELECT k, maxIf(v, v > 9) AS m FROM s GROUP BY k", ViewNotProvable, "maxIfState"),
    ("states", "SELECT k, maxArray([v]) AS m FROM s GROUP BY k", ViewNotProvable, "maxArrayState"),
    (
        "states",
        "SELECT k, maxMerge(top) AS m FROM stored_tops GROUP BY k",
        ViewNotProvable,
        "in a column AggregateFunction(max, Int64) of an AggregatingMergeTree, and read it with maxMerge.",
    ),
    ("lowest", "SELECT k, minIf(g, v > 9) AS l FROM s GROUP BY k", ViewNotProvable, "minIfState"),
    ("summing", "SELECT k, uniq(v) AS n FROM s GROUP BY k", ViewNotProvable, "uniqState"),
    ("summing", "SELECT k, toUInt64(avg(v)) AS n FROM s GROUP BY k", ViewNotProvable, "computed"),
    (
        "summing",
        "SELECT k, uniqMerge(u) AS n FROM states GROUP BY k",
        ViewNotProvable,
        "merges it by sum",
    ),
    ("summing", "SELECT k, toUInt64(max(v)) AS n FROM s GROUP BY k", ViewNotProvable, ""),
    ("states", "SELECT k, max(v) + 1 AS m FROM s GROUP BY k", ViewNotProvable, "computed"),
    ("states", "SELECT k, sum(v) AS m FROM s GROUP BY k", ViewNotProvable, "max"),
    ("wide", "SELECT k, count() AS n FROM s GROUP BY k", ViewNotProvable, "ORDER BY"),
    ("summing", "SELECT k, count() AS n FROM s GROUP BY k, g", ViewNotProvable, "ORDER BY"),
    ("summing", "SELECT k, count() AS n FROM s GROUP BY k HAVING n > 1", ViewNotProvable, "HAVING"),
    ("summing", "SELECT k, count() AS n FROM s GROUP BY k LIMIT 5", ViewNotProvable, "LIMIT"),
    (
        "summing",
        "SELECT k, count() AS n FROM s GROUP BY k LIMIT 1 BY k",
        ViewNotProvable,
        "LIMIT BY",
    ),
    ("summing", "SELECT DISTINCT k, toUInt64(1) AS n FROM s", ViewNotProvable, "DISTINCT"),
    ("summing", "SELECT k, toUInt64(now()) AS n FROM s", ViewNotProvable, "now()"),
    ("wide", "SELECT k, _table AS g, count() AS n FROM s GROUP BY k, g", ViewNotProvable, "RENAME"),
    (
        "summing",
        "SELECT a.k AS k, count() AS n FROM s AS a JOIN s AS b ON a.k = b.k GROUP BY k",
        ViewNotProvable,
        "twice",
    ),
    (
        "summing",
        "SELECT k, count() AS n FROM s WHERE k IN (SELECT k FROM s) GROUP BY k",
        ViewNotProvable,
        "twice",
    ),
    (
        "plain",
        "SELECT d.k AS k, s.k AS n FROM s RIGHT JOIN d ON s.k = d.k",
        ViewNotProvable,
        "RIGHT",
    ),
    ("plain", "SELECT d.k AS k, s.k AS n FROM s FULL JOIN d ON s.k = d.k", ViewNotProvable, "FULL"),
    (
        "summing",
        "SELECT k, sum(c) AS n FROM (SELECT k, g, count() AS c FROM s GROUP BY k, g) GROUP BY k",
        ViewNotProvable,
        "inner GROUP BY",
    ),
    ("wide", "SELECT k, toUInt64(1) AS n FROM s GROUP BY k", ViewNotProvable, "ORDER BY"),
    (
        "plain_state",
        "SELECT k, groupArrayState(v) AS g FROM s GROUP BY k",
        ViewNotProvable,
        "order",
    ),
    (
        "summing",
        "SELECT k, n FROM (SELECT k, toUInt64(1) AS n FROM s UNION ALL SELECT k, toUInt64(2) AS n FROM d)",
        QueryNotSupportedInMaterializedView,
        "UNION ALL",
    ),
    (
        "total",
        "SELECT count() AS n, max(v) AS top FROM s WHERE v > 0",
        ViewNotProvable,
        "of nothing",
    ),
    ("plain", "SELECT k, v AS n, g FROM s", ThereIsNoColumn, "g"),
    ("plain", "SELECT k, s.k FROM s", DuplicateColumn, "k"),
    (
        "states",
        "SELECT k, uniqState(toUInt32(v)) AS u FROM s GROUP BY k",
        CannotConvertType,
        "uniq",
    ),
    ("states", "SELECT k, uniq(k) AS u FROM s GROUP BY k", TypeMismatch, "uniqState"),
    ("plain", "SELECT number AS k FROM numbers(3)", QueryNotSupportedInMaterializedView, ""),
    ("plain", "SELECT toUInt64(1) AS k", QueryNotSupportedInMaterializedView, "no table"),
    ("plain", "SELECT k FROM window_on_s", QueryNotSupportedInMaterializedView, "never fire"),
    ("plain", "SELECT k FROM nothing_there", UnknownTable, "nothing_there"),
    ("nothing_there", "SELECT k FROM s", UnknownTable, "nothing_there"),
    ("window_on_s", "SELECT k FROM s", QueryNotSupportedInMaterializedView, "stores no rows"),
    (
        "plain",
        "SELECT k FROM s UNION ALL SELECT k FROM d",
        QueryNotSupportedInMaterializedView,
        "UNION ALL",
    ),
    (
        "summing",
        "SELECT k, toUInt64(quantile(0.9)(v)) AS n FROM s GROUP BY k",
        ViewNotProvable,
        "computed",
    ),
    (
        "summing",
        "SELECT k, toUInt64(1) AS n FROM s UNION DISTINCT SELECT k, toUInt64(2) AS n FROM s",
        ViewNotProvable,
        "DISTINCT",
    ),
    ("summing", "SELECT k, k AS n FROM s EXCEPT SELECT k, k FROM d", ViewNotProvable, "EXCEPT"),
    (
        "summing",
        "SELECT k, n FROM (SELECT k, k AS n FROM s UNION ALL SELECT k, k FROM d) WHERE n > 0",
        ViewNotProvable,
        "UNION ALL in a subquery",
    ),
    ("plain", "SELECT k, 'many' AS n FROM s", CannotConvertType, "many"),
    (
        "plain",
        "SELECT k, n FROM (SELECT k, '1' AS n FROM s UNION ALL SELECT k, 'many' AS n FROM s)",
        CannotConvertType,
        "many",
    ),
]


@pytest.mark.parametrize(("target", "query", "error", "says"), REFUSED)
def test_refused(
    connection: Connection, target: str, query: str, error: type[Error], says: str
) -> None:
    with pytest.raises(error) as caught:
        create(connection, target, query)
    assert says.lower() in str(caught.value).lower()
    assert caught.value.hint
    assert rows(connection, "SELECT count() FROM system.views WHERE name = 'refused'") == [(0,)]


def test_a_view_on_a_views_name_is_refused(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW upper TO summing AS SELECT k, count() AS n FROM s GROUP BY k"
    )
    try:
        with pytest.raises(QueryNotSupportedInMaterializedView, match=r"default\.summing"):
            create(connection, "plain", "SELECT k, n FROM upper")
        with pytest.raises(TableAlreadyExists):
            connection.execute("CREATE MATERIALIZED VIEW upper TO plain AS SELECT k FROM s")
        connection.execute(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS upper TO plain AS SELECT k FROM s"
        )
    finally:
        connection.execute("DROP VIEW upper")


def test_circles_are_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE c1 (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE c2 (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW c1_c2 TO c2 AS SELECT k FROM c1")
    with pytest.raises(TooDeepRecursion, match="circle"):
        create(connection, "c1", "SELECT k + 1 AS k FROM c2")
    with pytest.raises(TooDeepRecursion, match="circle"):
        create(connection, "c1", "SELECT k + 1 AS k FROM c1")


def test_a_chain_too_deep_to_fire_is_refused_from_either_end(connection: Connection) -> None:
    for level in range(66):
        connection.execute(f"CREATE TABLE level_{level} (k UInt64) ENGINE = MergeTree ORDER BY k")

    def step(level: int) -> None:
        connection.execute(
            f"CREATE MATERIALIZED VIEW step_{level} TO level_{level + 1} AS SELECT k FROM level_{level}"
        )

    for level in range(1, 65):
        step(level)
    with pytest.raises(TooDeepRecursion, match="one of 65"):
        step(0)
    connection.execute("DROP VIEW step_64")
    step(0)
    with pytest.raises(TooDeepRecursion, match="one of 65"):
        step(64)
    connection.execute("INSERT INTO level_0 VALUES (1)")
    assert rows(connection, "SELECT count() FROM level_64") == [(1,)]


ALLOWED = [
    ("summing", "SELECT k, count() AS n FROM s WHERE v > 0 GROUP BY k", ""),
    ("summing", "SELECT s.k AS k, count() AS n FROM s INNER JOIN d ON s.k = d.k GROUP BY k", ""),
    (
        "summing",
        "WITH 5 AS low SELECT k, toUInt64(sum(v)) AS n FROM (SELECT k, v FROM s WHERE v > low) GROUP BY k",
        "",
    ),
    ("summing", "SELECT k, k + 1 AS n FROM s", ""),
    (
        "summing",
        "SELECT k, toUInt64(1) AS n FROM s UNION ALL SELECT k + 1 AS k, toUInt64(2) AS n FROM s",
        "",
    ),
    (
        "summing",
        "SELECT k, n FROM (SELECT k, toUInt64(1) AS n FROM s UNION ALL SELECT k + 1 AS k, toUInt64(2) AS n FROM s)",
        "",
    ),
    ("states", "SELECT k, uniqState(k) AS u, max(v) AS m FROM s GROUP BY k", ""),
    ("total", "SELECT count() AS n, max(v) AS top FROM s", ""),
    ("plain", "SELECT k, count() AS n FROM s GROUP BY k", "groups"),
    ("plain", "SELECT k, v AS n FROM s LIMIT 3", "LIMIT"),
    ("plain", "SELECT k, toUInt64(now()) AS n FROM s", "now()"),
    ("plain", "SELECT k, length(_database) AS n FROM s", "RENAME"),
    ("plain", "SELECT k, k AS n FROM s WHERE k IN (SELECT k FROM d WHERE _table = 'd')", "RENAME"),
    ("plain", "SELECT k FROM s", ""),
    ("plain", "SELECT k, '7' AS n FROM s", ""),
    (
        "plain",
        "SELECT k, n FROM (SELECT k, k AS n FROM s UNION ALL SELECT k, k FROM d) WHERE n > 0",
        "UNION ALL in a subquery",
    ),
    ("plain", "SELECT k FROM s EXCEPT SELECT k FROM d", "EXCEPT"),
]


@pytest.mark.parametrize(("target", "query", "unprovable"), ALLOWED)
def test_allowed_and_marked(
    connection: Connection, target: str, query: str, unprovable: str
) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW allowed TO {target} AS {query}")
    try:
        status = dicts(connection, "SELECT * FROM system.views WHERE name = 'allowed'")[0]
        assert (status["verdict"] == "unproven") == bool(unprovable)
        assert unprovable in status["reason"]
    finally:
        connection.execute("DROP VIEW allowed")


def test_the_fix_of_a_parametric_aggregate_can_be_typed(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE mean (k UInt64, q Float64) ENGINE = SummingMergeTree ORDER BY k"
    )
    with pytest.raises(ViewNotProvable) as caught:
        create(connection, "mean", "SELECT k, quantile(0.9)(v) AS q FROM s GROUP BY k")
    assert caught.value.hint is not None
    assert "quantileState(0.9)" in caught.value.hint
    assert "AggregateFunction(quantile(0.9), Int64)" in caught.value.hint
    assert "quantileMerge(0.9)" in caught.value.hint


def test_the_column_list_of_an_inner_table_is_its_own(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW tops (k UInt64, top SimpleAggregateFunction(max, Int64) COMMENT 'x')"
        " ENGINE = AggregatingMergeTree ORDER BY k AS SELECT k, max(v) AS top FROM s GROUP BY k"
    )
    try:
        text = rows(connection, "SHOW CREATE TABLE tops")[0][0]
        assert "SimpleAggregateFunction(max, Int64) COMMENT 'x'" in text
        assert (
            dicts(connection, "SELECT * FROM system.views WHERE name = 'tops'")[0]["verdict"]
            == "covered"
        )
        connection.execute("DROP VIEW tops")
        connection.execute(text)  # The text creates the view again, inner table included.
        assert rows(connection, "SHOW CREATE TABLE tops") == [(text,)]
    finally:
        connection.execute("DROP VIEW tops")


def test_settings_of_the_insert_are_not_the_views(connection: Connection) -> None:
    with pytest.raises(BadArguments, match="of the INSERT"):
        create(connection, "plain", "SELECT k FROM s SETTINGS materialized_views_ignore_errors = 1")
    assert rows(connection, "SELECT count() FROM system.views WHERE name = 'refused'") == [(0,)]


def test_all_that_changes_a_querys_meaning_is_frozen(connection: Connection) -> None:
    sources = [path.read_text() for path in Path(bind.__file__).parent.rglob("*.py")]
    read = {
        name for text in sources for name in re.findall(r'context\.(?:flag|text)\(\s*"(\w+)"', text)
    }
    # No view has filters of its statement, and none is made in another zone than the warehouse's.
    of_statements = {"additional_table_filters", "additional_result_filter", "session_timezone"}
    assert read - of_statements <= QUERY_SETTINGS
    connection.execute(
        "CREATE MATERIALIZED VIEW distincts TO plain AS SELECT k, count(DISTINCT v) AS n FROM s"
        " GROUP BY k SETTINGS count_distinct_implementation = 'uniq'"
    )
    try:
        text = rows(connection, "SHOW CREATE TABLE distincts")[0][0]
        assert text.endswith("SETTINGS count_distinct_implementation = 'uniq'")
    finally:
        connection.execute("DROP VIEW distincts")


def test_a_view_keeps_the_settings_of_its_functions(connection: Connection) -> None:
    """An INSERT of a session with other settings gives what the definition meant."""
    connection.execute("CREATE TABLE w (k UInt8, a String, x Array(UInt8)) ORDER BY k")
    connection.execute("CREATE TABLE w_to (k UInt8, l UInt64, p UInt8, q UInt8) ORDER BY k")
    connection.execute("SET enable_unaligned_array_join = 1")
    connection.execute("SET function_locate_has_mysql_compatible_argument_order = 0")
    connection.execute(
        "CREATE MATERIALIZED VIEW w_mv TO w_to AS SELECT k, locate(a, 'b') AS l, p, q FROM w"
        " ARRAY JOIN x AS p, [7] AS q"
    )
    connection.execute("SET enable_unaligned_array_join = 0")
    connection.execute("SET function_locate_has_mysql_compatible_argument_order = 1")
    connection.execute("INSERT INTO w VALUES (1, 'ab', [1, 2])")
    assert rows(connection, "SELECT * FROM w_to ORDER BY p") == [(1, 2, 1, 7), (1, 2, 2, 0)]
