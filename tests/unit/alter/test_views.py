"""ALTER TABLE of tables that views read and write: refused, followed by the view, or made stale."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import AlterOfColumnIsForbidden, HaveDependentObjects, NotSupportedError
from olapdb.runtime.failpoints import watching
from tests.unit.views.warehouse import DIRECT, READ, add, make, rows, verdict

pytestmark = pytest.mark.feature("schema")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        add(opened, ("2024-01-01", "a", 1, 10), ("2024-02-01", "b", 2, 20))
        add(opened, ("2024-01-01", "a", 3, 30), ("2024-01-02", "b", 4, -5))
        yield opened


def stale(connection: Connection) -> list[tuple[object, ...]]:
    """Return partition and cause of each invalidation."""
    return rows(
        connection, "SELECT partition_id, cause FROM system.view_invalidations ORDER BY ALL"
    )


def assert_right(connection: Connection) -> None:
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def mended(connection: Connection) -> None:
    """Replay the stale slices; require that none is left and that the view is right."""
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert stale(connection) == []
    assert_right(connection)


def test_a_column_that_a_view_reads_is_not_dropped(connection: Connection) -> None:
    with pytest.raises(AlterOfColumnIsForbidden, match="daily_mv") as caught:
        connection.execute("ALTER TABLE events DROP COLUMN amount")
    assert caught.value.code == 524
    assert "MODIFY QUERY" in (caught.value.hint or "")
    assert_right(connection)


def test_a_column_that_a_view_writes_is_not_dropped(connection: Connection) -> None:
    with pytest.raises(AlterOfColumnIsForbidden, match="daily_mv"):
        connection.execute("ALTER TABLE daily DROP COLUMN users")


def test_a_column_that_no_view_needs_comes_and_goes(connection: Connection) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN note String DEFAULT upper(kind) AFTER kind")
    add_with_note = "INSERT INTO events (day, kind, user, amount) VALUES ('2024-03-01', 'c', 9, 1)"
    connection.execute(add_with_note)
    assert rows(connection, "SELECT DISTINCT note FROM events ORDER BY 1") == [
        ("A",),
        ("B",),
        ("C",),
    ]
    connection.execute("ALTER TABLE events DROP COLUMN note")
    connection.execute(add_with_note)
    assert stale(connection) == []
    assert_right(connection)


def test_a_view_follows_a_rename_of_what_it_reads(connection: Connection) -> None:
    connection.execute("ALTER TABLE events RENAME COLUMN amount TO cents")
    connection.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 5, 7)")
    assert stale(connection) == []
    direct = DIRECT.replace("amount", "cents")
    assert rows(connection, READ) == rows(connection, direct)
    connection.execute("ALTER TABLE events UPDATE cents = 1 WHERE user = 1")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, direct)


def test_a_view_follows_a_rename_of_what_it_writes(connection: Connection) -> None:
    connection.execute("ALTER TABLE daily RENAME COLUMN total TO sum_of_amount")
    add(connection, ("2024-01-01", "a", 5, 7))
    assert rows(connection, READ.replace("sum(total)", "sum(sum_of_amount)")) == rows(
        connection, DIRECT
    )
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    assert verdict(connection) == "proven"


def test_an_update_names_the_slices_that_it_reached(connection: Connection) -> None:
    connection.execute(
        "ALTER TABLE events UPDATE amount = amount * 2 WHERE kind = 'b' AND user = 2"
    )
    assert stale(connection) == [("202402", "UPDATE")]
    assert verdict(connection) == "stale"
    mended(connection)


def test_an_update_names_where_rows_come_from_and_where_they_go() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (k UInt8, g UInt8, v Int64) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE TABLE u (g UInt8, v Int64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY g"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO u AS SELECT g, sum(v) AS v FROM s GROUP BY g"
        )
        connection.execute("INSERT INTO s VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30)")
        assert connection.execute("UPDATE s SET g = 4 WHERE k = 2").rowcount == 1
        assert stale(connection) == [("2", "UPDATE"), ("4", "UPDATE")]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, "SELECT g, sum(v) FROM u GROUP BY g ORDER BY g") == [
            (1, 10),
            (3, 30),
            (4, 20),
        ]


def test_an_update_of_a_column_that_the_view_does_not_read_is_none_of_its_business(
    connection: Connection,
) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN note String")
    connection.execute("ALTER TABLE events UPDATE note = 'x' WHERE 1")
    assert stale(connection) == []
    assert rows(connection, "SELECT count() FROM events WHERE note = 'x'") == [(4,)]
    assert_right(connection)


def test_rows_that_views_wrote_are_not_updated_by_hand(connection: Connection) -> None:
    for statement in (
        "ALTER TABLE daily UPDATE total = 0 WHERE 1",
        "UPDATE daily SET total = 0 WHERE 1",
    ):
        with pytest.raises(HaveDependentObjects, match="daily_mv"):
            connection.execute(statement)


def test_a_wider_type_leaves_the_view_as_it_is(connection: Connection) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN small Int8")
    connection.execute(
        "CREATE TABLE smalls (kind String, n Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW smalls_mv TO smalls POPULATE AS"
        " SELECT kind, sum(small) AS n FROM events GROUP BY kind"
    )
    connection.execute("ALTER TABLE events MODIFY COLUMN small Int32")
    assert stale(connection) == []


def test_a_type_that_changes_values_makes_the_view_stale() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE s (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE u (k UInt8, v Int64) ENGINE = SummingMergeTree ORDER BY k")
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO u AS SELECT k, sum(v) AS v FROM s GROUP BY k"
        )
        connection.execute("INSERT INTO s VALUES (1, 300), (2, 5)")
        connection.execute("ALTER TABLE s MODIFY COLUMN v Int8")
        assert stale(connection) == [(None, "UPDATE")]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, "SELECT k, sum(v) FROM u GROUP BY k ORDER BY k") == [
            (1, 44),
            (2, 5),
        ]
        assert stale(connection) == []


def test_a_state_of_another_argument_does_not_fit_the_target(connection: Connection) -> None:
    with pytest.raises(AlterOfColumnIsForbidden, match="avg"):
        connection.execute("ALTER TABLE events MODIFY COLUMN amount Int8")


def test_a_type_that_the_view_cannot_take_is_refused(connection: Connection) -> None:
    with pytest.raises(AlterOfColumnIsForbidden, match="daily_mv"):
        connection.execute("ALTER TABLE events MODIFY COLUMN amount String")


def test_another_default_changes_what_older_parts_show(connection: Connection) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN fee Int64 DEFAULT 1")
    connection.execute(
        "CREATE TABLE fees (kind String, n Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW fees_mv TO fees POPULATE AS"
        " SELECT kind, sum(fee) AS n FROM events GROUP BY kind"
    )
    assert rows(connection, "SELECT sum(n) FROM fees") == [(4,)]
    connection.execute("ALTER TABLE events MODIFY COLUMN fee DEFAULT 2")
    assert rows(connection, "SELECT view, cause FROM system.view_invalidations") == [
        ("fees_mv", "UPDATE")
    ]
    connection.execute("SYSTEM REPLAY VIEW fees_mv STALE")
    assert rows(connection, "SELECT sum(n) FROM fees") == [(8,)]
    connection.execute("ALTER TABLE events MATERIALIZE COLUMN fee")
    assert stale(connection) == [], "what is written down reads as it did"
    connection.execute("ALTER TABLE events MODIFY COLUMN fee DEFAULT 3")
    assert stale(connection) == [], "no part lacks it any more"


def test_a_column_dropped_and_added_again_is_another_one(connection: Connection) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN fee Int64")
    connection.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 1, 1, 5)")
    connection.execute(
        "CREATE TABLE fees (kind String, n Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW fees_mv TO fees POPULATE AS"
        " SELECT kind, sum(fee) AS n FROM events GROUP BY kind"
    )
    connection.execute("ALTER TABLE events DROP COLUMN fee, ADD COLUMN fee Int64")
    assert rows(connection, "SELECT sum(fee) FROM events") == [(0,)]
    assert rows(connection, "SELECT view FROM system.view_invalidations") == [("fees_mv",)]


def test_a_chunk_of_before_an_update_cannot_be_published(connection: Connection) -> None:
    """The UPDATE commits between the computation of the chunk and its commit: it is computed again."""
    connection.execute("DETACH VIEW daily_mv")
    add(connection, ("2024-01-01", "a", 6, 6))
    connection.execute("ATTACH VIEW daily_mv")
    commits: list[str] = []

    def update_before_the_first(stage: str) -> None:
        if stage == "backfill.before_commit":
            commits.append(stage)
            if len(commits) == 1:
                connection.execute("ALTER TABLE events UPDATE amount = 60 WHERE user = 6")

    with watching(update_before_the_first):
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert len(commits) == 2
    mended(connection)


def test_a_view_has_the_columns_of_its_query(connection: Connection) -> None:
    with pytest.raises(NotSupportedError, match="columns are those of its query"):
        connection.execute("ALTER TABLE daily_mv ADD COLUMN x UInt8")


def test_a_dimension_that_is_updated_makes_its_views_stale() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE s (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE TABLE d (k UInt8, f Int64, x Int64) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute("CREATE TABLE u (k UInt8, v Int64) ENGINE = SummingMergeTree ORDER BY k")
        connection.execute("INSERT INTO d VALUES (1, 2, 0), (2, 3, 0)")
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO u AS SELECT s.k AS k, sum(s.v * d.f) AS v"
            " FROM s JOIN d ON s.k = d.k GROUP BY s.k"
        )
        connection.execute("INSERT INTO s VALUES (1, 10), (2, 10)")
        with pytest.raises(AlterOfColumnIsForbidden, match=r"default\.m"):
            connection.execute("ALTER TABLE d DROP COLUMN f")
        connection.execute("ALTER TABLE d RENAME COLUMN f TO factor")
        connection.execute("ALTER TABLE d UPDATE factor = 5 WHERE k = 1")
        assert [cause for _, cause in stale(connection)] == ["DIMENSION CHANGE"]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, "SELECT k, sum(v) FROM u GROUP BY k ORDER BY k") == [
            (1, 50),
            (2, 30),
        ]


def test_duplicates_that_leave_are_told(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 10), ("2024-02-01", "b", 2, 20))
    connection.execute("OPTIMIZE TABLE events FINAL DEDUPLICATE")
    assert rows(connection, "SELECT count() FROM events") == [(4,)]
    assert stale(connection) == [("202401", "UPDATE"), ("202402", "UPDATE")]
    mended(connection)


def test_an_update_under_the_new_name_is_told_to_a_view_of_the_old_one(
    connection: Connection,
) -> None:
    connection.execute(
        "ALTER TABLE events RENAME COLUMN amount TO cents, UPDATE cents = 0 WHERE user = 2"
    )
    assert [cause for _, cause in stale(connection)] == ["UPDATE"]
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT.replace("amount", "cents"))


def test_nulls_that_are_replaced_leave_their_slice_and_enter_another() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (k UInt8, g Nullable(UInt8)) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE TABLE u (g UInt8, n UInt64) ENGINE = SummingMergeTree PARTITION BY g ORDER BY g"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO u AS SELECT ifNull(g, 9) AS g, count() AS n FROM s GROUP BY g"
        )
        connection.execute("INSERT INTO s VALUES (1, 1), (2, NULL), (3, 3)")
        connection.execute("ALTER TABLE s MODIFY COLUMN g UInt8 DEFAULT 3")
        assert stale(connection) == [("3", "UPDATE"), ("9", "UPDATE")]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, "SELECT g, sum(n) FROM u GROUP BY g ORDER BY g") == [(1, 1), (3, 2)]


_RETYPED = [
    ("UInt8", "UInt16", "bitNot(x)", 5),
    ("DateTime", "DateTime('Asia/Tokyo')", "toString(toDate(x))", "2024-01-01 20:00:00"),
    ("Int64", "Nullable(Int64)", "isNull(sumIf(x, 0))", 5),
]
"""A wider type that holds the same values, and an expression whose result shows the type."""


@pytest.mark.parametrize(("before", "after", "expression", "value"), _RETYPED)
def test_a_type_of_the_same_values_makes_stale_what_tells_them_apart(
    before: str, after: str, expression: str, value: object
) -> None:
    query = f"SELECT k, toString({expression}) AS y FROM s GROUP BY k, x"
    if "sumIf" in expression:
        query = f"SELECT k, toString({expression}) AS y FROM s GROUP BY k"
    with olapdb.connect() as connection:
        connection.execute(f"CREATE TABLE s (k UInt8, x {before}) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE u (k UInt8, y String) ENGINE = MergeTree ORDER BY k")
        connection.execute(f"CREATE MATERIALIZED VIEW m TO u AS {query}")
        connection.execute("INSERT INTO s VALUES (1, ?)", [value])
        read = "SELECT k, y FROM u"
        assert rows(connection, read) == rows(connection, query)
        connection.execute(f"ALTER TABLE s MODIFY COLUMN x {after}")
        assert stale(connection) == [(None, "UPDATE")]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, read) == rows(connection, query)


@pytest.mark.parametrize(
    ("alter", "column"),
    [
        ("MODIFY COLUMN r Int8", "r"),
        ("MODIFY COLUMN r String", "r"),
        ("MODIFY COLUMN r Nullable(Int64)", "r"),
        ("MODIFY COLUMN at DateTime('Asia/Tokyo')", "at"),
        ("MODIFY COLUMN late Int64 DEFAULT 8", "late"),
    ],
)
def test_a_joined_column_that_reads_otherwise_makes_stale_what_was_made_with_it(
    alter: str, column: str
) -> None:
    query = (
        f"SELECT f.k AS k, ifNull(toString(d.{column}), 'none') AS y, sum(f.v) AS v"
        " FROM f LEFT JOIN d ON f.k = d.k GROUP BY k, y"
    )
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE f (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE TABLE d (k UInt8, r Int64, at DateTime) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute("INSERT INTO d VALUES (1, 300, '2024-01-01 20:00:00')")
        connection.execute("ALTER TABLE d ADD COLUMN late Int64 DEFAULT 7, ADD COLUMN note String")
        connection.execute(
            "CREATE TABLE u (k UInt8, y String, v Int64) ENGINE = SummingMergeTree ORDER BY (k, y)"
        )
        connection.execute(f"CREATE MATERIALIZED VIEW m TO u AS {query}")
        connection.execute("INSERT INTO f VALUES (1, 1), (2, 2)")
        read = "SELECT k, y, v FROM u ORDER BY ALL"
        connection.execute("ALTER TABLE d MODIFY COLUMN note LowCardinality(String)")
        assert stale(connection) == []
        connection.execute(f"ALTER TABLE d {alter}")
        assert stale(connection) == [(None, "DIMENSION CHANGE")]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, read) == rows(connection, f"{query} ORDER BY ALL")
        assert stale(connection) == []


def test_a_joined_table_without_rows_gives_its_defaults() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE f (k UInt8) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE d (k UInt8, r Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE u (k UInt8, y UInt8) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO u AS"
            " SELECT f.k AS k, isNull(d.r) AS y FROM f LEFT JOIN d ON f.k = d.k"
        )
        connection.execute("ALTER TABLE d MODIFY COLUMN r Nullable(Int64)")
        assert stale(connection) == []  # the view has made no rows yet
        connection.execute("ALTER TABLE d MODIFY COLUMN r Int64 DEFAULT 0")
        connection.execute("INSERT INTO f VALUES (1)")
        connection.execute("ALTER TABLE d MODIFY COLUMN r Nullable(Int64)")
        assert stale(connection) == [(None, "DIMENSION CHANGE")]
        connection.execute("SYSTEM REPLAY VIEW m STALE")
        assert rows(connection, "SELECT k, y FROM u") == [(1, 1)]


def test_several_columns_of_one_view_are_renamed_at_once(connection: Connection) -> None:
    wanted = rows(connection, READ)
    connection.execute("ALTER TABLE daily RENAME COLUMN total TO a, RENAME COLUMN events TO b")
    connection.execute("ALTER TABLE daily RENAME COLUMN a TO total, RENAME COLUMN b TO events")
    connection.execute("ALTER TABLE events RENAME COLUMN amount TO a, RENAME COLUMN user TO amount")
    assert stale(connection) == []
    assert rows(connection, READ) == wanted
    query = str(rows(connection, "SELECT as_select FROM system.views")[0][0])
    assert "(a)" in query
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    assert verdict(connection) == "proven"
    connection.execute("ALTER TABLE events RENAME COLUMN amount TO user, RENAME COLUMN a TO amount")
    assert str(rows(connection, "SELECT as_select FROM system.views")[0][0]).count("amount") == 2
    add(connection, ("2024-01-01", "a", 1, 10))
    assert_right(connection)


@pytest.mark.parametrize(
    ("alter", "named"),
    [
        ("ALTER TABLE d MODIFY COLUMN twice Int64 ALIAS r * 3", True),
        ("ALTER TABLE d DROP COLUMN twice, ADD COLUMN twice Int64 ALIAS r * 3", True),
        ("ALTER TABLE d MODIFY COLUMN other Int64 ALIAS r + 7", False),
        (
            "CREATE OR REPLACE TABLE d (k UInt8, r Int64, twice Int64 ALIAS r * 3)"
            " ENGINE = MergeTree ORDER BY k AS SELECT k, r FROM d",
            True,
        ),
    ],
)
def test_another_alias_is_another_expression_of_the_views(alter: str, named: bool) -> None:
    joins = "SELECT f.k AS k, sum(d.twice) AS v FROM f LEFT JOIN d ON f.k = d.k GROUP BY k"
    reads = "SELECT k, sum(twice) AS v FROM d GROUP BY k"
    replaces = alter.startswith("CREATE")
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE f (k UInt8) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE TABLE d (k UInt8, r Int64, twice Int64 ALIAS r * 2, other Int64 ALIAS r)"
            " ENGINE = MergeTree ORDER BY k"
        )
        for target, query in (("joined", joins), ("own", reads)):
            if target == "own" and replaces:
                continue
            connection.execute(
                f"CREATE TABLE {target} (k UInt8, v Int64) ENGINE = SummingMergeTree ORDER BY k"
            )
            connection.execute(f"CREATE MATERIALIZED VIEW {target}_mv TO {target} AS {query}")
        connection.execute("INSERT INTO d (k, r) VALUES (1, 10)")
        connection.execute("INSERT INTO f VALUES (1)")
        connection.execute(alter)
        causes = ["DIMENSION CHANGE"] if replaces else ["DIMENSION CHANGE", "UPDATE"]
        assert [cause for _, cause in stale(connection)] == (causes if named else [])
        connection.execute("SYSTEM REPLAY VIEW joined_mv STALE")
        assert rows(connection, "SELECT * FROM joined") == rows(connection, joins)
