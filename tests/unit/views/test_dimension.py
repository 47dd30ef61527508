"""A change of a joined table makes stale only the slices and keys that join the changed rows."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import AlterOfColumnIsForbidden, NotSupportedError
from tests.unit.views.warehouse import dicts, rows

LEFT = (
    "SELECT e.day AS day, e.kind AS kind, sum(e.amount * k.weight) AS w FROM events AS e"
    " LEFT JOIN kinds AS k ON e.kind = k.kind GROUP BY day, kind"
)


# Kind a has rows in every month, b in January, c in February.
pytestmark = [
    pytest.mark.warehouse(
        (
            "CREATE TABLE events (day Date, kind String, amount Int64) ENGINE = MergeTree "
            "PARTITION BY toYYYYMM(day) ORDER BY (kind, day)"
        ),
        (
            "CREATE TABLE kinds (kind String, weight Int64, note String) ENGINE = MergeTree "
            "ORDER BY kind"
        ),
        (
            "CREATE TABLE t (day Date, kind String, w Int64) ENGINE = SummingMergeTree "
            "PARTITION BY toYYYYMM(day) ORDER BY (day, kind)"
        ),
        "INSERT INTO kinds VALUES ('a', 1, ''), ('b', 2, ''), ('c', 3, '')",
        merges=False,
    ),
    pytest.mark.feature("views", "dimensions"),
]


def fill(connection: Connection, query: str = LEFT, settings: str = "") -> None:
    """Create the view of the query and insert the events."""
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query} {settings}")
    connection.execute(
        "INSERT INTO events VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 1), "
        "('2024-02-01', 'a', 1), ('2024-02-02', 'c', 1), ('2024-03-01', 'a', 1)"
    )


def stale(connection: Connection, view: str = "v") -> dict[str | None, list[str]]:
    """Return the stale keys of the view by slice."""
    found = dicts(connection, f"SELECT * FROM system.view_invalidations WHERE view = '{view}'")
    assert {one["cause"] for one in found} <= {"DIMENSION CHANGE"}
    return {one["partition_id"]: one["keys"] for one in found}


@pytest.mark.parametrize(
    ("change", "reached"),
    [
        ("INSERT INTO kinds VALUES ('b', 5, '')", {"202401": ["(2024-01-02, b)"]}),
        ("INSERT INTO kinds VALUES ('unknown', 5, '')", {}),
        ("DELETE FROM kinds WHERE kind = 'c'", {"202402": ["(2024-02-02, c)"]}),
        ("ALTER TABLE kinds UPDATE weight = 9 WHERE kind = 'b'", {"202401": ["(2024-01-02, b)"]}),
        ("ALTER TABLE kinds UPDATE note = 'seen' WHERE 1", {}),
        ("ALTER TABLE kinds UPDATE weight = weight + 0 WHERE 1", {}),
        (
            "TRUNCATE TABLE kinds",
            {
                "202401": ["(2024-01-01, a)", "(2024-01-02, b)"],
                "202402": ["(2024-02-01, a)", "(2024-02-02, c)"],
                "202403": ["(2024-03-01, a)"],
            },
        ),
        (
            "CREATE OR REPLACE TABLE kinds ENGINE = MergeTree ORDER BY kind AS"
            " SELECT kind, weight FROM kinds ORDER BY kind DESC",
            {},
        ),
        (
            "CREATE OR REPLACE TABLE kinds ENGINE = MergeTree ORDER BY weight AS"
            " SELECT kind, if(kind = 'c', toInt64(0), weight) AS weight, 1 AS more FROM kinds",
            {"202402": ["(2024-02-02, c)"]},
        ),
    ],
)
def test_what_a_change_reaches(
    connection: Connection, change: str, reached: dict[str, list[str]]
) -> None:
    fill(connection)
    connection.execute(change)
    assert {slice_: sorted(keys) for slice_, keys in stale(connection).items()} == reached
    replayed = dicts(connection, "SYSTEM REPLAY VIEW v STALE")
    assert {one["partition"] for one in replayed} == reached.keys()
    assert {one["verdict"] for one in dicts(connection, "SYSTEM RECONCILE VIEW v")} == {"equal"}
    assert stale(connection) == {}


def test_effective_dates_reach_just_their_days(connection: Connection) -> None:
    """A reserve changes from 10 % to 15 % from the third on, for one segment."""
    connection.execute(
        "CREATE TABLE policies (kind String, valid_from Date, valid_to Date, percent Int64) "
        "ENGINE = MergeTree ORDER BY (kind, valid_from)"
    )
    connection.execute(
        "INSERT INTO policies VALUES ('a', '2024-01-01', '2025-01-01', 10), "
        "('b', '2024-01-01', '2025-01-01', 10)"
    )
    connection.execute(
        "CREATE TABLE reserves (day Date, kind String, reserve Int64) ENGINE = SummingMergeTree "
        "PARTITION BY day ORDER BY (day, kind)"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW r TO reserves AS SELECT e.day AS day, e.kind AS kind, "
        "sum(e.amount * p.percent) AS reserve FROM events AS e INNER JOIN policies AS p "
        "ON e.kind = p.kind AND e.day >= p.valid_from AND e.day < p.valid_to GROUP BY day, kind"
    )
    connection.execute(
        "INSERT INTO events SELECT toDate('2024-03-01') + number % 6, ['a', 'b'][1 + number % 2],"
        " 100 FROM numbers(36)"
    )
    connection.execute("ALTER TABLE policies UPDATE valid_to = '2024-03-04' WHERE kind = 'a'")
    assert stale(connection, "r") == {"20240305": ["(2024-03-05, a)"]}
    connection.execute("INSERT INTO policies VALUES ('a', '2024-03-04', '2025-01-01', 15)")
    assert set(stale(connection, "r")) == {"20240305"}
    replayed = dicts(connection, "SYSTEM REPLAY VIEW r STALE")
    assert [one["partition"] for one in replayed] == ["20240305"]
    assert rows(
        connection,
        "SELECT day, sum(reserve) FROM reserves WHERE kind = 'a' GROUP BY day ORDER BY day",
    ) == rows(
        connection,
        "SELECT e.day, sum(e.amount * p.percent) FROM events AS e INNER JOIN policies"
        " AS p ON e.kind = p.kind AND e.day >= p.valid_from AND e.day < p.valid_to"
        " WHERE e.kind = 'a' GROUP BY e.day ORDER BY e.day",
    )


def test_only_the_parts_that_hold_the_key_are_read(connection: Connection) -> None:
    connection.execute("SET dimension_lookup_rows_max = 3")
    fill(connection)
    connection.execute("INSERT INTO kinds VALUES ('c', 1, '')")
    assert set(stale(connection)) == {"202402"}
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    connection.execute("INSERT INTO kinds VALUES ('a', 1, '')")  # joins five rows
    assert set(stale(connection)) == {None}


def test_where_it_cannot_be_told_all_is_stale(connection: Connection) -> None:
    query = "SELECT day, kind, sum(amount * (SELECT max(weight) FROM kinds)) AS w FROM events GROUP BY day, kind"
    fill(connection, query)
    connection.execute("INSERT INTO kinds VALUES ('z', 100, '')")
    assert set(stale(connection)) == {None}
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert rows(connection, "SELECT sum(w) FROM t") == [(500,)]


def test_a_view_that_fails_on_the_new_rows_is_stale_as_a_whole(connection: Connection) -> None:
    query = LEFT.replace("e.amount * k.weight", "throwIf(k.weight = 13, 'boom') + k.weight")
    fill(connection, query)
    connection.execute("INSERT INTO kinds VALUES ('b', 13, '')")
    assert set(stale(connection)) == {None}


def test_a_chain_that_joins(connection: Connection) -> None:
    """The view's source is another view's target, merged or not."""
    connection.execute(
        "CREATE TABLE monthly (month UInt32, kind String, w Int64) ENGINE = SummingMergeTree "
        "PARTITION BY month ORDER BY (month, kind)"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO t AS SELECT day, kind, sum(amount) AS w FROM events"
        " GROUP BY day, kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO monthly AS SELECT toYYYYMM(t.day) AS month, t.kind AS kind,"
        " sum(t.w * k.weight) AS w FROM t INNER JOIN kinds AS k ON t.kind = k.kind"
        " GROUP BY month, kind"
    )
    for _ in range(2):
        connection.execute(
            "INSERT INTO events VALUES ('2024-01-01', 'a', 1), ('2024-02-02', 'c', 1)"
        )
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("INSERT INTO kinds VALUES ('c', 4, '')")
    assert stale(connection, "m") == {"202402": ["(202402, c)"]}
    connection.execute("SYSTEM REPLAY VIEW m STALE")
    assert rows(connection, "SELECT month, sum(w) FROM monthly GROUP BY month ORDER BY month") == [
        (202401, 2),
        (202402, 14),
    ]


def test_a_replay_of_a_dimension_that_changes_nothing(connection: Connection) -> None:
    """The joined table is itself a view's target; its replay writes equal rows into new parts."""
    connection.execute(
        "CREATE TABLE raw (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE TABLE weights (kind String, weight Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW w TO weights AS SELECT kind, sum(weight) AS weight FROM raw GROUP BY kind"
    )
    connection.execute("INSERT INTO raw VALUES ('a', 1), ('b', 2)")
    fill(connection, LEFT.replace("kinds", "weights"))
    connection.execute("SYSTEM REPLAY VIEW w")
    assert stale(connection) == {}
    connection.execute("INSERT INTO raw VALUES ('b', 2)")
    assert stale(connection) == {"202401": ["(2024-01-02, b)"]}


# --- at_insert


def test_at_insert_stays_as_it_was(connection: Connection) -> None:
    fill(connection, settings="SETTINGS dimensions = 'at_insert'")
    before = rows(connection, "SELECT * FROM t ORDER BY ALL")
    connection.execute("TRUNCATE TABLE kinds")
    assert stale(connection) == {}
    assert rows(connection, "SELECT * FROM t ORDER BY ALL") == before
    (view,) = dicts(connection, "SELECT verdict, reason FROM system.views WHERE name = 'v'")
    assert view["verdict"] == "unproven"
    assert "at_insert" in view["reason"]
    (one,) = dicts(connection, "SELECT * FROM system.view_dependencies WHERE kind = 'dimension'")
    assert (one["depends_on"], one["mode"]) == ("kinds", "at_insert")
    ((made,),) = rows(connection, "SHOW CREATE TABLE v")
    assert made.endswith("SETTINGS dimensions = 'at_insert'")
    connection.execute("DROP VIEW v")
    connection.execute(made)
    assert rows(connection, "SELECT verdict FROM system.views") == [("unproven",)]


def test_current_is_said_too(connection: Connection) -> None:
    fill(connection)
    found = dicts(connection, "SELECT kind, mode FROM system.view_dependencies")
    assert {one["kind"]: one["mode"] for one in found} == {
        "source": "",
        "target": "",
        "dimension": "current",
    }


def test_another_mode_is_refused(connection: Connection) -> None:
    with pytest.raises(NotSupportedError, match="dimensions"):
        fill(connection, settings="SETTINGS dimensions = 'sometimes'")


# --- CREATE OR REPLACE


def test_a_dimension_that_is_replaced_stays_the_views(connection: Connection) -> None:
    fill(connection)
    connection.execute(
        "CREATE OR REPLACE TABLE kinds (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
    )
    assert rows(connection, "SELECT count() FROM kinds") == [(0,)]
    connection.execute("INSERT INTO kinds VALUES ('a', 7)")
    connection.execute("INSERT INTO events VALUES ('2024-05-01', 'a', 1)")
    assert rows(connection, "SELECT w FROM t WHERE day = '2024-05-01'") == [(7,)]
    connection.execute("OPTIMIZE TABLE kinds FINAL")
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert {one["verdict"] for one in dicts(connection, "SYSTEM RECONCILE VIEW v")} == {"equal"}


def test_a_column_of_another_type_is_another_one(connection: Connection) -> None:
    fill(connection)
    connection.execute("ALTER TABLE kinds UPDATE weight = 0 WHERE 1")
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    connection.execute(
        "CREATE OR REPLACE TABLE kinds ENGINE = MergeTree ORDER BY kind AS"
        " SELECT kind, toInt32(5) AS weight FROM kinds"
    )
    assert stale(connection)
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert {one["verdict"] for one in dicts(connection, "SYSTEM RECONCILE VIEW v")} == {"equal"}


def test_a_dimension_without_rows_is_replaced_by_another_type() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE f (k UInt8) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE d (k UInt8, n Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE u (k UInt8, y UInt8) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO u AS"
            " SELECT f.k AS k, isNull(d.n) AS y FROM f LEFT JOIN d ON f.k = d.k"
        )
        connection.execute("INSERT INTO f VALUES (1)")
        connection.execute(
            "CREATE OR REPLACE TABLE d (k UInt8, n Nullable(Int64)) ENGINE = MergeTree ORDER BY k"
        )
        assert stale(connection)
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        assert rows(connection, "SELECT k, y FROM u") == [(1, 1)]


def test_a_dimension_must_go_on_fitting(connection: Connection) -> None:
    fill(connection)
    with pytest.raises(AlterOfColumnIsForbidden, match=r"default\.v would not fit"):
        connection.execute(
            "CREATE OR REPLACE TABLE kinds (kind String) ENGINE = MergeTree ORDER BY kind"
        )
    with pytest.raises(AlterOfColumnIsForbidden, match=r"default\.v would not fit"):
        connection.execute(
            "CREATE OR REPLACE TABLE events (day Date) ENGINE = MergeTree ORDER BY day"
        )
    assert stale(connection) == {}
    assert rows(connection, "SELECT count() FROM kinds") == [(3,)]
