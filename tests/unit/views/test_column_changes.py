"""Columns added, dropped and renamed in a view's source, target and dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import AlterOfColumnIsForbidden, Error
from olapdb.model.schema import Table
from olapdb.views.definition.dependents import views_needing_column
from tests.unit.views.warehouse import QUERY, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("views", "schema")

WITH_TOP = QUERY.replace("count() AS events", "count() AS events, max(amount) AS top")
JOINED = """
    SELECT e.day, d.label AS label, sum(e.amount) AS amount
    FROM events AS e LEFT JOIN labels AS d USING (kind) GROUP BY e.day, label
"""


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        make(opened)
        add(opened, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))
        yield opened


def joined(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE labels (kind String, label String, note String) ENGINE = MergeTree ORDER BY tuple()"
    )
    connection.execute("INSERT INTO labels VALUES ('a', 'apple', ''), ('b', 'bear', '')")
    connection.execute(
        "CREATE TABLE by_label (day Date, label String, amount Int64)"
        " ENGINE = SummingMergeTree ORDER BY (day, label)"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW label_mv TO by_label POPULATE AS {JOINED}")


def proven(connection: Connection, view: str = "daily_mv") -> bool:
    connection.execute(f"SYSTEM RECONCILE VIEW {view}")
    return verdict(connection, view) == "proven"


# --- the documented recipes -----------------------------------------------------------------------


def test_a_column_is_added_through_source_view_and_target(connection: Connection) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN country String DEFAULT 'unknown'")
    connection.execute(
        "ALTER TABLE daily ADD COLUMN top SimpleAggregateFunction(max, Int64),"
        " ADD COLUMN countries AggregateFunction(uniqExact, String)"
    )
    assert verdict(connection) == "covered"  # nothing has changed for the view yet
    connection.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 3, 9, 'nl')")
    query = WITH_TOP.replace("FROM", ", uniqExactState(country) AS countries FROM")
    connection.execute(f"ALTER TABLE daily_mv MODIFY QUERY {query}")
    assert verdict(connection) == "stale"
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    asked = (
        "SELECT kind, max(top), uniqExactMerge(countries) FROM daily GROUP BY kind ORDER BY kind"
    )
    assert rows(connection, asked) == [("a", 9, 2), ("b", 6, 1)]
    assert proven(connection)


def test_a_column_is_dropped_from_view_source_and_target(connection: Connection) -> None:
    for statement in ("ALTER TABLE events DROP COLUMN user", "ALTER TABLE daily DROP COLUMN users"):
        with pytest.raises(AlterOfColumnIsForbidden) as refused:
            connection.execute(statement)
        assert refused.value.code == 524
        assert "default.daily_mv" in str(refused.value)
        assert "ALTER TABLE default.daily_mv MODIFY QUERY" in refused.value.hint
    without = QUERY.replace("uniqExactState(user) AS users,", "")
    connection.execute(f"ALTER TABLE daily_mv MODIFY QUERY {without}")
    connection.execute("ALTER TABLE daily DROP COLUMN users")
    connection.execute("ALTER TABLE events DROP COLUMN user")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 9)")
    assert rows(connection, "SELECT kind, sum(total) FROM daily GROUP BY kind ORDER BY kind") == [
        ("a", 14),
        ("b", 6),
    ]
    assert proven(connection)


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [
        ("events", "amount", "value"),
        ("events", "user", "users"),
        ("daily", "users", "people"),
        ("daily", "total", "amount"),
    ],
)
def test_a_view_follows_a_renamed_column(
    connection: Connection, table: str, old: str, new: str
) -> None:
    connection.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    assert rows(connection, "SELECT definition_version FROM system.views") == [(1,)]
    connection.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 3, 9)")
    total = new if (table, old) == ("daily", "total") else "total"
    assert rows(
        connection, f"SELECT kind, sum({total}) FROM daily GROUP BY kind ORDER BY kind"
    ) == [("a", 14), ("b", 6)]
    assert proven(connection)


RENAMES = [
    ("labels", "label", "tag"),
    ("labels", "kind", "sort"),  # USING reads the table through a subquery
    ("by_label", "amount", "total"),
]


@pytest.mark.parametrize(("table", "old", "new"), RENAMES)
def test_a_joining_view_follows_a_renamed_column(
    connection: Connection, table: str, old: str, new: str
) -> None:
    joined(connection)
    connection.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    connection.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 3, 9)")
    amount = new if old == "amount" and table == "by_label" else "amount"
    assert rows(connection, f"SELECT sum({amount}) FROM by_label") == [(20,)]
    assert proven(connection, "label_mv")


def test_a_plain_view_follows_too(connection: Connection) -> None:
    connection.execute(
        "CREATE VIEW apples AS SELECT day, sum(amount) AS amount FROM events WHERE kind = 'a' GROUP BY day"
    )
    connection.execute("CREATE VIEW all_daily AS SELECT * FROM daily_mv")
    connection.execute("ALTER TABLE events RENAME COLUMN amount TO value")
    connection.execute("ALTER TABLE daily RENAME COLUMN total TO value")
    assert rows(connection, "SELECT amount FROM apples") == [(5,)]
    assert rows(connection, "SELECT sum(total) FROM all_daily") == [(11,)]


def test_a_type_that_the_view_cannot_take_is_refused(connection: Connection) -> None:
    with pytest.raises(Error) as refused:
        connection.execute("ALTER TABLE events MODIFY COLUMN amount String")
    assert "default.daily_mv" in str(refused.value)
    add(connection, ("2024-01-01", "a", 3, 9))
    assert proven(connection)


# --- which columns a view needs -------------------------------------------------------------------


def needed(connection: Connection, table: str) -> dict[str, list[tuple[str, str]]]:
    snapshot = connection.database.services.catalog.snapshot()
    found = snapshot.find("default", table)
    assert isinstance(found, Table)
    return {
        column.name: [
            (use.name.split(".")[1], use.role)
            for use in views_needing_column(snapshot, found.id, column.name)
        ]
        for column in found.columns
    }


def test_who_needs_a_column(connection: Connection) -> None:
    joined(connection)
    source = needed(connection, "events")
    assert source["kind"] == [("daily_mv", "source"), ("label_mv", "source")]
    assert source["user"] == [("daily_mv", "source")]
    labels = needed(connection, "labels")
    assert labels["kind"] == labels["label"] == [("label_mv", "dimension")]
    assert labels["note"] == []
    assert needed(connection, "by_label")["amount"] == [("label_mv", "target")]


def test_a_column_is_needed_through_a_plain_view(connection: Connection) -> None:
    joined(connection)
    connection.execute("CREATE VIEW short AS SELECT kind, note AS label FROM labels")
    connection.execute(
        "CREATE TABLE noted (label String, n UInt64) ENGINE = SummingMergeTree ORDER BY label"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW noted_mv TO noted AS SELECT d.label AS label, count() AS n"
        " FROM events AS e LEFT JOIN short AS d USING (kind) GROUP BY label"
    )
    assert needed(connection, "labels")["note"] == [("noted_mv", "dimension")]


def test_a_column_in_whose_place_another_one_would_be_read(connection: Connection) -> None:
    """Without `events.note` the name `note` would bind to the dimension's column and mean something
    else, so system tables list it as needed."""
    joined(connection)
    connection.execute("ALTER TABLE events ADD COLUMN note String")
    connection.execute(
        "CREATE TABLE noted (note String, n UInt64) ENGINE = SummingMergeTree ORDER BY note"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW noted_mv TO noted AS SELECT e.note AS note, count() AS n"
        " FROM events AS e LEFT JOIN labels AS d ON e.kind = d.kind GROUP BY note"
    )
    assert needed(connection, "events")["note"] == [("noted_mv", "source")]
    mended = dicts(connection, "SELECT mend FROM system.views WHERE name = 'noted_mv'")
    assert mended == [{"mend": "SYSTEM BACKFILL VIEW default.noted_mv"}]


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("ALTER TABLE events MODIFY COLUMN kind Nullable(String)", True),
        ("ALTER TABLE labels MODIFY COLUMN label Nullable(String)", True),
        ("ALTER TABLE labels MODIFY COLUMN note Nullable(String)", False),
    ],
)
def test_a_null_that_the_target_cannot_take_is_refused_at_the_alter(
    statement: str, refused: bool
) -> None:
    """Otherwise the INSERT that brings the first NULL would fail."""
    with olapdb.connect() as connection:
        for table in (
            "events (kind String, n Int64)",
            "labels (kind String, label String, note String)",
        ):
            connection.execute(f"CREATE TABLE {table} ENGINE = MergeTree ORDER BY tuple()")
        connection.execute(
            "CREATE TABLE sums (kind String, label String, n Int64) ENGINE = SummingMergeTree"
            " ORDER BY (kind, label)"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT kind, label, sum(n) AS n"
            " FROM events LEFT JOIN labels USING kind GROUP BY kind, label"
        )
        if not refused:
            connection.execute(statement)
            return
        with pytest.raises(AlterOfColumnIsForbidden, match=r"sums_mv.*so no NULL") as error:
            connection.execute(statement)
        assert "MODIFY QUERY" in str(error.value.hint)
        connection.execute(
            "ALTER TABLE sums_mv MODIFY QUERY SELECT ifNull(kind, '') AS kind,"
            " ifNull(label, '') AS label, sum(n) AS n FROM events LEFT JOIN labels USING kind"
            " GROUP BY kind, label"
        )
        connection.execute(statement)
        connection.execute(
            "INSERT INTO labels VALUES ('a', NULL, '')"
            if "labels" in statement
            else "INSERT INTO events VALUES (NULL, 1)"
        )
        connection.execute("INSERT INTO events VALUES ('a', 2)")
        assert verdict(connection, "sums_mv") != "broken"


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        ("UInt8", "UInt16", "1"),
        ("String", "LowCardinality(String)", "'a'"),
        ("Enum8('a' = 1)", "Enum8('a' = 1, 'b' = 2)", "'a'"),
    ],
)
@pytest.mark.parametrize(
    ("stored", "expression"),
    [
        ("Dynamic", "{t}.x"),
        ("Dynamic", "if({t}.x = {v}, {t}.x, {t}.x)"),
        ("Array(Dynamic)", "[{t}.x]"),
        ("String", "dynamicType({t}.x::Dynamic)"),
    ],
)
@pytest.mark.parametrize("table", ["s", "d"])
def test_a_type_that_a_dynamic_keeps_is_not_that_of_older_rows(
    table: str, stored: str, expression: str, before: str, after: str, value: str
) -> None:
    computed = expression.format(t=table, v=value)
    with olapdb.connect() as connection:
        for statement in (
            f"CREATE TABLE s (k UInt8, x {before}) ENGINE = MergeTree ORDER BY k",
            f"CREATE TABLE d (k UInt8, x {before}) ENGINE = MergeTree ORDER BY k",
            f"CREATE TABLE t (k UInt8, y {stored}) ENGINE = MergeTree ORDER BY k",
            f"CREATE MATERIALIZED VIEW v TO t AS SELECT s.k AS k, {computed} AS y FROM s JOIN d ON s.k = d.k",
            f"INSERT INTO d VALUES (1, {value})",
            f"INSERT INTO s VALUES (1, {value})",
        ):
            connection.execute(statement)
        assert proven(connection, "v")
        connection.execute(f"ALTER TABLE {table} MODIFY COLUMN x {after}")
        assert verdict(connection, "v") == "stale"
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        assert proven(connection, "v")
