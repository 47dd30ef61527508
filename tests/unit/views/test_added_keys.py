"""A key that an ALTER adds to a view's target before MODIFY QUERY gives it, as ClickHouse documents it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import AlterOfColumnIsForbidden, Error, ViewNotProvable
from tests.unit.views.warehouse import dicts, rows, verdict

pytestmark = pytest.mark.feature("views", "schema")

COUNTS = "SELECT toStartOfDay(at) AS at, kind, count() AS n FROM s GROUP BY at, kind"
BY_COUNTRY = (
    "SELECT toStartOfDay(at) AS at, kind, country, count() AS n FROM s GROUP BY at, kind, country"
)
ADD_KEY = "ADD COLUMN country String AFTER kind, MODIFY ORDER BY (kind, at, country)"
TARGET = "(at DateTime, kind String, n UInt64) ENGINE = SummingMergeTree ORDER BY (kind, at)"
STATES = (
    "(at DateTime, kind String, n SimpleAggregateFunction(sum, UInt64))"
    " ENGINE = AggregatingMergeTree ORDER BY (kind, at)"
)


def run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement)


def add(connection: Connection, *values: tuple[str, str]) -> None:
    """Insert rows of (kind, country) at noon."""
    text = ", ".join(f"('2024-01-01 12:00:00', '{k}', '{c}')" for k, c in values)
    connection.execute(f"INSERT INTO s (at, kind, country) VALUES {text}")


def equal(connection: Connection, view: str = "v") -> bool:
    """Return whether all of the target equals the recomputed query."""
    checks = dicts(connection, f"SYSTEM RECONCILE VIEW {view}")
    return {check["verdict"] for check in checks} == {"equal"}


@pytest.fixture(params=[TARGET, STATES])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Give a view of the source `s` without the key `country`, which the source has."""
    with olapdb.connect() as opened:
        run(
            opened,
            "CREATE TABLE s (at DateTime, kind String, country String) ENGINE = MergeTree ORDER BY at",
            f"CREATE TABLE t {request.param}",
            f"CREATE MATERIALIZED VIEW v TO t AS {COUNTS}",
        )
        add(opened, ("a", "NL"), ("b", "NL"))
        yield opened


def test_a_key_is_added_to_target_and_view_in_turn(connection: Connection) -> None:
    assert equal(connection)
    run(connection, f"ALTER TABLE t {ADD_KEY}")
    assert verdict(connection, "v") == "proven"
    add(connection, ("a", "CH"))
    assert verdict(connection, "v") == "covered"
    run(connection, "OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT kind, country, n FROM t ORDER BY kind") == [
        ("a", "", 2),
        ("b", "", 1),
    ]
    assert equal(connection)
    run(connection, "SYSTEM REPLAY VIEW v")
    assert equal(connection)
    run(connection, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}")
    assert verdict(connection, "v") == "stale"
    add(connection, ("a", "CH"))
    run(connection, "SYSTEM REPLAY VIEW v STALE", "OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT kind, country, n FROM t ORDER BY ALL") == [
        ("a", "CH", 2),
        ("a", "NL", 1),
        ("b", "NL", 1),
    ]
    assert equal(connection)
    assert verdict(connection, "v") == "proven"


def test_the_key_of_an_inner_table_is_added_in_turn() -> None:
    with olapdb.connect() as connection:
        run(
            connection,
            "CREATE TABLE s (at DateTime, kind String, country String) ENGINE = MergeTree ORDER BY at",
            f"CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY (kind, at) AS {COUNTS}",
        )
        add(connection, ("a", "NL"))
        ((inner,),) = rows(connection, "SELECT name FROM system.tables WHERE name LIKE '.inner%'")
        run(connection, f"ALTER TABLE `{inner}` {ADD_KEY}")
        add(connection, ("a", "CH"))
        assert equal(connection)
        run(connection, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}", "SYSTEM REPLAY VIEW v STALE")
        assert rows(connection, "SELECT kind, country, n FROM v FINAL ORDER BY ALL") == [
            ("a", "CH", 1),
            ("a", "NL", 1),
        ]
        assert equal(connection)


def test_a_backfill_and_a_job_of_the_past_work_in_between(connection: Connection) -> None:
    run(connection, "DETACH TABLE v")
    add(connection, ("a", "DE"), ("c", "DE"))
    run(connection, "ATTACH TABLE v", f"ALTER TABLE t {ADD_KEY}")
    assert verdict(connection, "v") == "partial"
    run(connection, "SYSTEM BACKFILL VIEW v")
    assert verdict(connection, "v") == "covered"
    assert equal(connection)
    run(connection, "ALTER TABLE s DELETE WHERE country = 'DE'")
    assert verdict(connection, "v") == "stale"
    run(connection, "SYSTEM REPLAY VIEW v STALE")
    assert equal(connection)
    assert rows(connection, "SELECT kind, country, n FROM t FINAL ORDER BY ALL") == [
        ("a", "", 1),
        ("b", "", 1),
    ]


def test_the_key_may_change_its_default_in_between(connection: Connection) -> None:
    run(connection, f"ALTER TABLE t {ADD_KEY}")
    add(connection, ("a", "CH"))
    for default in ("'x'", "'y'"):
        run(connection, f"ALTER TABLE t MODIFY COLUMN country DEFAULT {default}")
        assert verdict(connection, "v") == "stale"
        run(connection, "SYSTEM REPLAY VIEW v STALE")
        add(connection, ("a", "CH"))
        assert verdict(connection, "v") == "covered"
        assert equal(connection)
    assert rows(connection, "SELECT kind, country, n FROM t FINAL ORDER BY ALL") == [
        ("a", "y", 4),
        ("b", "y", 1),
    ]
    run(connection, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}", "SYSTEM REPLAY VIEW v STALE")
    assert equal(connection)


@pytest.mark.parametrize(
    "default", ["toString(n)", "toString(rand())", "concat(kind, toString(n))", "toString(today())"]
)
def test_a_default_that_differs_within_a_group_is_refused_in_between(
    connection: Connection, default: str
) -> None:
    run(connection, f"ALTER TABLE t {ADD_KEY}")
    with pytest.raises(
        AlterOfColumnIsForbidden, match=r"country is a key of default\.t that it does"
    ):
        run(connection, f"ALTER TABLE t MODIFY COLUMN country DEFAULT {default}")
    add(connection, ("a", "CH"))
    assert equal(connection)


def test_a_default_may_be_computed_from_the_keys_that_the_view_gives(
    connection: Connection,
) -> None:
    run(connection, f"ALTER TABLE t {ADD_KEY}")
    add(connection, ("a", "CH"))
    run(connection, "ALTER TABLE t MODIFY COLUMN country DEFAULT concat(kind, '!')")
    add(connection, ("a", "CH"), ("c", "CH"))
    assert verdict(connection, "v") == "stale"  # rows of before have the default of before
    run(connection, "SYSTEM REPLAY VIEW v STALE")
    add(connection, ("a", "CH"))
    assert equal(connection)
    found = rows(connection, "SELECT kind, country, sum(n) FROM t GROUP BY ALL ORDER BY ALL")
    assert found == [("a", "a!", 4), ("b", "b!", 1), ("c", "c!", 1)]


def test_definitions_that_forget_the_key_are_refused(connection: Connection) -> None:
    run(connection, f"ALTER TABLE t {ADD_KEY}")
    for statement in (
        f"ALTER TABLE v MODIFY QUERY {COUNTS}",
        f"ALTER TABLE v MODIFY QUERY {COUNTS.replace('FROM s', 'FROM s WHERE kind != 1::String')}",
        f"CREATE MATERIALIZED VIEW w TO t AS {COUNTS}",
        f"CREATE OR REPLACE MATERIALIZED VIEW v TO t AS {COUNTS}",
        "SYSTEM REBUILD VIEW v",
    ):
        with pytest.raises(ViewNotProvable, match="joins rows by its ORDER BY"):
            run(connection, statement)
    run(connection, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}")
    with pytest.raises(ViewNotProvable, match="joins rows by its ORDER BY"):
        run(connection, f"ALTER TABLE v MODIFY QUERY {COUNTS}")
    run(connection, "SYSTEM REPLAY VIEW v STALE")
    assert equal(connection)


def test_the_key_may_be_dropped_again_until_the_view_gives_it(connection: Connection) -> None:
    run(connection, f"ALTER TABLE t {ADD_KEY}")
    add(connection, ("a", "CH"))
    run(connection, "ALTER TABLE t MODIFY ORDER BY (kind, at), DROP COLUMN country")
    assert equal(connection)
    add(connection, ("a", "CH"))
    assert equal(connection)
    run(connection, f"ALTER TABLE t {ADD_KEY}", f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}")
    with pytest.raises(AlterOfColumnIsForbidden):
        run(connection, "ALTER TABLE t MODIFY ORDER BY (kind, at)")


def test_a_column_that_becomes_a_key_later_is_no_added_key(connection: Connection) -> None:
    run(connection, "ALTER TABLE t ADD COLUMN country SimpleAggregateFunction(any, String)")
    with pytest.raises(Error, match="Only columns that the same ALTER adds"):
        run(connection, "ALTER TABLE t MODIFY ORDER BY (kind, at, country)")


def test_several_keys_and_views_in_turn(connection: Connection) -> None:
    run(
        connection,
        f"CREATE MATERIALIZED VIEW w TO t AS {COUNTS}",
        f"ALTER TABLE t {ADD_KEY}",
        "ALTER TABLE t ADD COLUMN zone UInt8, MODIFY ORDER BY (kind, at, country, zone)",
    )
    add(connection, ("a", "CH"))
    assert equal(connection)
    with pytest.raises(ViewNotProvable):
        run(connection, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}")
    both = BY_COUNTRY.replace("count()", "toUInt8(length(country)) AS zone, count()") + ", zone"
    run(connection, f"ALTER TABLE v MODIFY QUERY {both}", "SYSTEM REPLAY VIEW v STALE")
    add(connection, ("a", "CH"))
    assert equal(connection)
    assert equal(connection, "w")
    run(connection, f"ALTER TABLE w MODIFY QUERY {both}", "SYSTEM REPLAY VIEW w STALE")
    add(connection, ("a", "NL"))
    assert equal(connection)
    assert equal(connection, "w")
    assert rows(connection, "SELECT sum(n) FROM t FINAL") == [(8,)]  # of 5 rows by v, of 3 by w


def test_a_view_of_the_target_follows_the_key(connection: Connection) -> None:
    run(
        connection,
        "CREATE TABLE days (at DateTime, n UInt64) ENGINE = SummingMergeTree ORDER BY at",
        "CREATE MATERIALIZED VIEW below TO days AS SELECT at, sum(n) AS n FROM t GROUP BY at",
        "SYSTEM BACKFILL VIEW below",
        f"ALTER TABLE t {ADD_KEY}",
    )
    add(connection, ("a", "CH"))
    assert equal(connection, "below")
    run(connection, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}", "SYSTEM REPLAY VIEW v STALE")
    if verdict(connection, "below") == "stale":
        run(connection, "SYSTEM REPLAY VIEW below STALE")
    assert equal(connection, "below")
    assert rows(connection, "SELECT sum(n) FROM days") == [(3,)]


def test_retained_keys_stay_frozen(connection: Connection) -> None:
    with olapdb.connect() as opened:
        run(
            opened,
            "CREATE TABLE s (at DateTime, kind String, country String) ENGINE = MergeTree"
            " PARTITION BY kind ORDER BY at",
            f"CREATE TABLE t {TARGET}",
            f"CREATE MATERIALIZED VIEW v TO t AS {COUNTS}",
        )
        add(opened, ("a", "NL"), ("b", "NL"))
        run(
            opened,
            "ALTER TABLE s DROP PARTITION 'a' SETTINGS retain = 1",
            f"ALTER TABLE t {ADD_KEY}",
        )
        add(opened, ("b", "CH"))
        assert equal(opened)
        run(opened, "SYSTEM REPLAY VIEW v")
        run(opened, f"ALTER TABLE v MODIFY QUERY {BY_COUNTRY}", "SYSTEM REPLAY VIEW v STALE")
        assert rows(opened, "SELECT kind, country, n FROM t FINAL ORDER BY ALL") == [
            ("a", "", 1),
            ("b", "CH", 1),
            ("b", "NL", 1),
        ]
        assert equal(opened)


def test_the_added_key_is_known_after_a_reopening(tmp_path: object) -> None:
    with olapdb.connect(f"{tmp_path}/warehouse") as opened:
        run(
            opened,
            "CREATE TABLE s (at DateTime, kind String, country String) ENGINE = MergeTree ORDER BY at",
            f"CREATE TABLE t {TARGET}",
            f"CREATE MATERIALIZED VIEW v TO t AS {COUNTS}",
            f"ALTER TABLE t {ADD_KEY}",
        )
        add(opened, ("a", "NL"))
    with olapdb.connect(f"{tmp_path}/warehouse") as opened:
        add(opened, ("a", "NL"))
        assert equal(opened)
        run(opened, "ALTER TABLE t MODIFY COMMENT 'x', MODIFY COLUMN n COMMENT 'y'")
        assert verdict(opened, "v") == "proven"


def test_a_plain_view_below_may_be_replaced_in_between(connection: Connection) -> None:
    run(
        connection,
        "CREATE TABLE d (kind String, name String) ENGINE = MergeTree ORDER BY kind",
        "CREATE VIEW p AS SELECT kind, name FROM d",
        "INSERT INTO d VALUES ('a', 'x'), ('b', 'y')",
        "CREATE TABLE t2 (name String, n UInt64) ENGINE = SummingMergeTree ORDER BY name",
        "CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT name, count() AS n FROM s JOIN p USING (kind) GROUP BY name",
        "SYSTEM BACKFILL VIEW v2",
        "ALTER TABLE t2 ADD COLUMN country String, MODIFY ORDER BY (name, country)",
        "CREATE OR REPLACE VIEW p AS SELECT kind, upper(name) AS name FROM d",
    )
    assert verdict(connection, "v2") == "stale"
    run(connection, "SYSTEM REPLAY VIEW v2 STALE")
    add(connection, ("a", "CH"))
    assert equal(connection, "v2")
    assert rows(connection, "SELECT name, n FROM t2 FINAL ORDER BY name") == [("X", 2), ("Y", 1)]
