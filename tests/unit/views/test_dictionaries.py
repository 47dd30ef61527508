"""Views that read a dictionary: a change of its table makes stale just what looked it up."""

from __future__ import annotations

import pyarrow as pa
import pytest

import olapdb
from olapdb import errors
from olapdb.compute.dictionary_rows import DictionaryRows
from olapdb.dbapi.connection import Connection
from olapdb.execute.operators.dictionaries import KEPT, KeptDictionaries
from olapdb.plan.expressions import DictionaryShape
from tests.unit.views.warehouse import dicts, rows, verdict

DICTIONARY = (
    "CREATE DICTIONARY by_kind (kind String, weight Int64 DEFAULT 7, note String) PRIMARY KEY kind"
    " SOURCE(CLICKHOUSE(TABLE 'kinds')) LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)"
)
QUERY = (
    "SELECT day, kind, sum(amount * dictGet('by_kind', 'weight', kind)) AS w FROM events"
    " GROUP BY day, kind"
)
pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE events (day Date, kind String, amount Int64) ENGINE = MergeTree "
        "PARTITION BY toYYYYMM(day) ORDER BY (kind, day)",
        "CREATE TABLE kinds (kind String, weight Int64, note String) ENGINE = MergeTree "
        "ORDER BY kind",
        "CREATE TABLE t (day Date, kind String, w Int64) ENGINE = SummingMergeTree "
        "PARTITION BY toYYYYMM(day) ORDER BY (day, kind)",
        "INSERT INTO kinds VALUES ('a', 1, ''), ('b', 2, ''), ('c', 3, '')",
        DICTIONARY,
        merges=False,
    ),
    pytest.mark.feature("views", "dimensions", "functions"),
]


def fill(connection: Connection, query: str = QUERY) -> None:
    """Create the view of the query and insert the events."""
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    connection.execute(
        "INSERT INTO events VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 1), "
        "('2024-02-01', 'a', 1), ('2024-02-02', 'c', 1), ('2024-03-01', 'x', 1)"
    )


def stale(connection: Connection) -> dict[str | None, list[str]]:
    """Return the stale keys of the view by slice."""
    found = dicts(connection, "SELECT * FROM system.view_invalidations WHERE view = 'v'")
    assert {one["cause"] for one in found} <= {"DIMENSION CHANGE"}
    return {one["partition_id"]: sorted(one["keys"]) for one in found}


def assert_replay_mends(connection: Connection, query: str = QUERY) -> None:
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert stale(connection) == {}
    mended = rows(connection, "SELECT day, kind, sum(w) FROM t GROUP BY day, kind ORDER BY ALL")
    assert mended == rows(connection, f"{query} ORDER BY ALL")
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert {one["verdict"] for one in found} == {"equal"}


@pytest.mark.parametrize(
    ("change", "reached"),
    [
        ("INSERT INTO kinds VALUES ('b', 5, '')", {"202401": ["(2024-01-02, b)"]}),
        ("INSERT INTO kinds VALUES ('b', 1, '')", {}),
        ("INSERT INTO kinds VALUES ('x', 5, '')", {"202403": ["(2024-03-01, x)"]}),
        ("INSERT INTO kinds VALUES ('x', 7, '')", {}),
        ("INSERT INTO kinds VALUES ('unknown', 5, '')", {}),
        ("DELETE FROM kinds WHERE kind = 'c'", {"202402": ["(2024-02-02, c)"]}),
        ("ALTER TABLE kinds UPDATE weight = 9 WHERE kind = 'b'", {"202401": ["(2024-01-02, b)"]}),
        ("ALTER TABLE kinds UPDATE note = 'seen' WHERE 1", {}),
        (
            "TRUNCATE TABLE kinds",
            {
                "202401": ["(2024-01-01, a)", "(2024-01-02, b)"],
                "202402": ["(2024-02-01, a)", "(2024-02-02, c)"],
            },
        ),
    ],
)
def test_a_change_makes_stale_what_looks_up_the_changed_rows(
    connection: Connection, change: str, reached: dict[str | None, list[str]]
) -> None:
    fill(connection)
    assert verdict(connection, "v") == "covered"
    connection.execute(change)
    if reached:
        assert stale(connection) == reached
    else:
        assert stale(connection) == {}
    assert_replay_mends(connection)


def test_a_range_is_reached_by_its_key(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE rates (kind String, since Date, until Date, rate Int64)"
        " ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute("INSERT INTO rates VALUES ('a', '2024-01-01', '2024-01-31', 5)")
    connection.execute(
        "CREATE DICTIONARY by_day (kind String, since Date, until Date, rate Int64 DEFAULT 1) PRIMARY KEY"
        " kind SOURCE(CLICKHOUSE(TABLE 'rates')) LAYOUT(COMPLEX_KEY_RANGE_HASHED())"
        " RANGE(MIN since MAX until) LIFETIME(0)"
    )
    query = (
        "SELECT day, kind, sum(dictGet('by_day', 'rate', kind, day)) AS w FROM events"
        " GROUP BY day, kind"
    )
    fill(connection, query)
    connection.execute("INSERT INTO rates VALUES ('a', '2024-02-01', '2024-02-28', 6)")
    assert stale(connection) == {"202402": ["(2024-02-01, a)"]}
    assert_replay_mends(connection, query)


def test_ranges_without_an_end_are_open_or_refused(connection: Connection) -> None:
    create = (
        "CREATE DICTIONARY spans (k UInt64, a Date, b Date) PRIMARY KEY k SOURCE(NULL())"
        " LAYOUT(RANGE_HASHED(convert_null_range_bound_to_open {})) RANGE(MIN a MAX b) LIFETIME(0)"
    )
    with pytest.raises(olapdb.NotSupportedError, match="WHERE a IS NOT NULL"):
        connection.execute(create.format(0))
    connection.execute(create.format(1))


def test_the_filter_of_a_view_may_look_up(connection: Connection) -> None:
    query = (
        "SELECT day, kind, sum(amount) AS w FROM events WHERE dictHas('by_kind', kind)"
        " GROUP BY day, kind"
    )
    fill(connection, query)
    connection.execute("INSERT INTO kinds VALUES ('x', 1, '')")
    assert stale(connection) == {"202403": ["(2024-03-01, x)"]}
    assert_replay_mends(connection, query)


def test_a_walk_along_a_hierarchy_makes_all_rows_stale(connection: Connection) -> None:
    connection.execute("CREATE TABLE tree (id UInt64, up UInt64) ENGINE = MergeTree ORDER BY id")
    connection.execute("INSERT INTO tree VALUES (1, 0), (2, 1)")
    connection.execute(
        "CREATE DICTIONARY above (id UInt64, up UInt64 HIERARCHICAL) PRIMARY KEY id"
        " SOURCE(CLICKHOUSE(TABLE 'tree')) LAYOUT(FLAT()) LIFETIME(0)"
    )
    query = (
        "SELECT day, kind, sum(toInt64(length(dictGetHierarchy('above', toUInt64(amount))))) AS w"
        " FROM events GROUP BY day, kind"
    )
    fill(connection, query)
    connection.execute("ALTER TABLE tree UPDATE up = 2 WHERE id = 1")
    assert stale(connection)
    assert_replay_mends(connection, query)


def test_a_table_whose_merges_drop_rows_needs_final(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE latest (kind String, weight Int64) ENGINE = ReplacingMergeTree ORDER BY kind"
    )
    for source in ("TABLE 'latest'", "QUERY 'SELECT kind, weight FROM latest FINAL'"):
        connection.execute(
            "CREATE OR REPLACE DICTIONARY newest (kind String, weight Int64) PRIMARY KEY kind"
            f" SOURCE(CLICKHOUSE({source})) LAYOUT(HASHED()) LIFETIME(0)"
        )
        query = QUERY.replace("by_kind", "newest")
        connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
        reason = rows(connection, "SELECT reason FROM system.views WHERE name = 'v'")[0][0]
        assert ("read without FINAL" in reason) == ("FINAL" not in source), reason
        connection.execute("DROP VIEW v")


def test_objects_that_a_view_needs_stay(connection: Connection) -> None:
    fill(connection)
    for statement in (
        "DROP DICTIONARY by_kind",
        "DROP TABLE kinds",
        DICTIONARY.replace("CREATE", "CREATE OR REPLACE").replace("DEFAULT 7", "DEFAULT 8"),
    ):
        with pytest.raises(errors.HaveDependentObjects):
            connection.execute(statement)
    connection.execute(DICTIONARY.replace("CREATE", "CREATE OR REPLACE"))


def test_renames_keep_the_view(connection: Connection) -> None:
    fill(connection)
    connection.execute("CREATE DATABASE other")
    connection.execute("RENAME DICTIONARY by_kind TO other.weights")
    connection.execute("RENAME TABLE kinds TO sorts")
    (shown,) = rows(connection, "SHOW CREATE DICTIONARY other.weights")
    assert "SOURCE(CLICKHOUSE(TABLE 'sorts' DB 'default'))" in shown[0]
    connection.execute("INSERT INTO events VALUES ('2024-04-01', 'c', 1)")
    assert rows(connection, "SELECT w FROM t WHERE day = '2024-04-01'") == [(3,)]
    connection.execute("INSERT INTO sorts VALUES ('c', 30, '')")
    assert stale(connection) == {"202402": ["(2024-02-02, c)"], "202404": ["(2024-04-01, c)"]}


def test_a_renamed_column_becomes_an_expression(connection: Connection) -> None:
    connection.execute("ALTER TABLE kinds RENAME COLUMN weight TO grams")
    (shown,) = rows(connection, "SHOW CREATE DICTIONARY by_kind")
    assert "`weight` Int64 DEFAULT 7 EXPRESSION grams" in shown[0]
    assert rows(connection, "SELECT dictGet('by_kind', 'weight', 'b')") == [(2,)]
    connection.execute(shown[0].replace("CREATE", "CREATE OR REPLACE"))
    assert rows(connection, "SELECT dictGet('by_kind', 'weight', 'c')") == [(3,)]


def test_a_computed_name_is_refused(connection: Connection) -> None:
    query = QUERY.replace("'by_kind'", "concat('by_', 'kind')")
    with pytest.raises(errors.QueryNotSupportedInMaterializedView, match="name of a dictionary"):
        connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")


def test_a_view_over_its_own_source_is_refused(connection: Connection) -> None:
    connection.execute(
        "CREATE DICTIONARY mine (kind String, amount Int64) PRIMARY KEY kind"
        " SOURCE(CLICKHOUSE(TABLE 'events')) LAYOUT(HASHED()) LIFETIME(0)"
    )
    query = QUERY.replace("by_kind", "mine").replace("weight", "amount")
    with pytest.raises(errors.Error, match="reads its source"):
        connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (k String, w Int64 DEFAULT dictGet('by_kind', 'weight', k)) ORDER BY k",
        "CREATE TABLE x (k String) ORDER BY dictGet('by_kind', 'weight', k)",
        "CREATE TABLE x (k String) ORDER BY k PARTITION BY dictGet('by_kind', 'weight', k)",
        "CREATE TABLE x (k String, CONSTRAINT c CHECK dictHas('by_kind', k)) ORDER BY k",
    ],
)
def test_what_is_not_supported_says_so(connection: Connection, statement: str) -> None:
    with pytest.raises(errors.NotSupportedError):
        connection.execute(statement)


def test_rows_are_kept_until_their_table_changes(connection: Connection) -> None:
    KEPT.clear()
    query = "SELECT dictGet('by_kind', 'weight', 'a')"

    def read_rows() -> int:
        cursor = connection.execute(query)
        cursor.fetchall()
        return cursor.statistics.rows_read

    assert read_rows() == 3 + 1  # the dictionary's rows, and the one row of a SELECT without FROM
    assert read_rows() == 1
    connection.execute("INSERT INTO kinds VALUES ('z', 26, '')")
    assert read_rows() == 4 + 1
    connection.execute("SYSTEM RELOAD DICTIONARY by_kind")
    KEPT.clear()
    assert read_rows() == 4 + 1


def test_rows_of_what_has_no_parts_are_read_by_each_query(connection: Connection) -> None:
    connection.execute(
        "CREATE DICTIONARY sizes (name String, total UInt64) PRIMARY KEY name SOURCE(CLICKHOUSE("
        "QUERY 'SELECT name, assumeNotNull(total_rows) FROM system.tables WHERE database = \\'default\\'"
        " AND name = \\'kinds\\'')) LAYOUT(HASHED()) LIFETIME(0)"
    )
    for total in (3, 4):
        assert rows(connection, "SELECT dictGet('sizes', 'total', 'kinds')") == [(total,)]
        connection.execute("INSERT INTO kinds VALUES ('z', 26, '')")


def test_the_rows_count_against_the_memory_limit(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO kinds SELECT toString(number), number, repeat('x', 100) FROM numbers(20000)"
    )
    KEPT.clear()
    query = "SELECT dictGet('by_kind', 'weight', '5') SETTINGS max_memory_usage = 1000000"
    for _ in range(2):
        with pytest.raises(errors.MemoryLimitExceeded, match="dictionary"):
            connection.execute(query).fetchall()
        connection.execute("SELECT dictGet('by_kind', 'weight', '5')").fetchall()


def test_a_process_keeps_no_more_than_it_may() -> None:
    columns = [pa.array([1, 2, 3], pa.uint64()), pa.array(["a", "b", "c"])]
    shape = DictionaryShape("d", 1, False, False, -1, None, ())
    made = [DictionaryRows(columns, 3, shape, 1) for _ in range(3)]
    kept = KeptDictionaries(2 * made[0].nbytes)
    for at in range(3):
        kept.put(at, made[at])
    assert [kept.get(at) for at in range(3)] == [None, made[1], made[2]]
    none = KeptDictionaries(made[0].nbytes - 1)
    none.put(0, made[0])
    assert none.get(0) is None


def test_dictionaries_survive_a_reopen(tmp_path: object) -> None:
    path = str(tmp_path)
    with olapdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE kinds (kind String, weight Int64, note String) ORDER BY kind"
        )
        connection.execute(DICTIONARY)
        connection.execute("INSERT INTO kinds VALUES ('a', 1, '')")
    with olapdb.connect(path) as connection:
        assert rows(connection, "SELECT dictGet('by_kind', 'weight', 'a')") == [(1,)]
        assert rows(connection, "SHOW DICTIONARIES") == [("by_kind",)]
