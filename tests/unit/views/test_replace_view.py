"""CREATE OR REPLACE of views: one commit replaces the view by a new one with its own coverage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, HaveDependentObjects, TableAlreadyExists
from olapdb.maintenance.check import check_database
from tests.harness.race import Race
from tests.unit.views.warehouse import DIRECT, QUERY, READ, VIEW, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("views")

REPLACE = VIEW.replace("CREATE", "CREATE OR REPLACE", 1)
INNER = (
    "CREATE OR REPLACE MATERIALIZED VIEW kinds ENGINE = SummingMergeTree ORDER BY kind POPULATE"
    " AS SELECT kind, sum({} * amount) AS total FROM events GROUP BY kind"
)
KINDS = "SELECT kind, sum(total) FROM kinds GROUP BY kind ORDER BY kind"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(str(tmp_path)) as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        add(opened, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))
        yield opened
        services = opened.database.services
        assert check_database(services.catalog, services.store) == []


def test_a_new_view_whose_coverage_begins_anew(connection: Connection) -> None:
    before = rows(connection, "SELECT uuid FROM system.views")
    connection.execute(REPLACE)
    assert rows(connection, "SELECT uuid FROM system.views") != before
    # The old view's rows are now bypass rows; ADOPT proves that the new view makes the same ones.
    assert verdict(connection) == "bypassed"
    connection.execute("SYSTEM ADOPT VIEW daily_mv")
    assert verdict(connection) == "proven"
    add(connection, ("2024-01-01", "a", 3, 7))
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_another_query_replaces_what_the_old_one_made(connection: Connection) -> None:
    connection.execute(REPLACE.replace("sum(amount)", "sum(2 * amount)"))
    connection.execute("SYSTEM REPLAY VIEW daily_mv DISCARD BYPASS")
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, "SELECT sum(total) FROM daily") == [(22,)]
    reconciled = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
    assert {r["verdict"] for r in reconciled} == {"equal"}


def test_an_inner_table_goes_with_its_view(connection: Connection) -> None:
    connection.execute(INNER.format(1))
    assert rows(connection, KINDS) == [("a", 5), ("b", 6)]
    connection.execute(INNER.format(3))
    assert rows(connection, KINDS) == [("a", 15), ("b", 18)]
    inner = rows(connection, "SELECT count() FROM system.tables WHERE name LIKE '.inner%'")
    assert inner == [(1,)]


def test_it_creates_what_is_not_there(connection: Connection) -> None:
    connection.execute("DROP VIEW daily_mv")
    connection.execute(REPLACE)
    assert verdict(connection) == "bypassed"


def test_refused_as_a_whole(connection: Connection) -> None:
    with pytest.raises(TableAlreadyExists, match="is no materialized view"):
        connection.execute(REPLACE.replace("daily_mv", "events", 1))
    with pytest.raises(Error):
        connection.execute(REPLACE.replace("sum(amount)", "avg(amount)"))
    add(connection, ("2024-01-01", "a", 3, 7))
    assert verdict(connection) == "covered"
    connection.execute(INNER.format(1))
    name = rows(connection, "SELECT name FROM system.tables WHERE name LIKE '.inner%'")[0][0]
    connection.execute("CREATE TABLE sums (total Int64) ENGINE = SummingMergeTree ORDER BY tuple()")
    connection.execute(
        f"CREATE MATERIALIZED VIEW down TO sums AS SELECT sum(total) AS total FROM `{name}`"
    )
    with pytest.raises(HaveDependentObjects):
        connection.execute(INNER.format(2))


def test_versions_go_with_the_view(connection: Connection) -> None:
    connection.execute(
        f"SYSTEM REBUILD VIEW daily_mv AS {QUERY.replace('sum(amount)', 'sum(3 * amount)')}"
    )
    connection.execute(REPLACE)
    assert rows(connection, "SHOW TABLES") == [("daily",), ("daily_mv",), ("events",)]


LABELS = (
    "CREATE TABLE labels (kind String, label String) ENGINE = MergeTree ORDER BY kind",
    "INSERT INTO labels VALUES ('a', 'x'), ('b', 'y')",
    "CREATE VIEW below AS SELECT kind, label FROM labels",
    "CREATE VIEW short AS SELECT kind, label FROM below",
    "CREATE TABLE by_label (label String, n SimpleAggregateFunction(sum, UInt64))"
    " ENGINE = AggregatingMergeTree ORDER BY label",
    "CREATE MATERIALIZED VIEW label_mv TO by_label AS SELECT d.label AS label, count() AS n"
    " FROM events AS e LEFT JOIN short AS d USING (kind) GROUP BY label",
    "SYSTEM BACKFILL VIEW label_mv",
)
BY_LABEL = "SELECT label, sum(n) FROM by_label GROUP BY label ORDER BY label"
COUNTED = (
    "SELECT d.label, count() FROM events AS e LEFT JOIN short AS d USING (kind)"
    " GROUP BY 1 ORDER BY 1"
)


def of_labels(connection: Connection) -> tuple[object, ...]:
    """Return verdict and number of stale slices of the trigger through `short`."""
    sql = "SELECT verdict, stale_slices FROM system.views WHERE name = 'label_mv'"
    return rows(connection, sql)[0]


@pytest.mark.parametrize("replaced", ["short", "below"])
def test_a_plain_view_that_a_trigger_reads_through_is_replaced_under_it(
    connection: Connection, replaced: str
) -> None:
    for statement in LABELS:
        connection.execute(statement)
    of = "below" if replaced == "short" else "labels"
    assert of_labels(connection) == ("covered", 0)
    through = "SELECT depends_on FROM system.view_dependencies WHERE kind = 'view' ORDER BY 1"
    assert rows(connection, through) == [("below",), ("short",)]
    connection.execute(
        f"CREATE OR REPLACE VIEW {replaced} AS SELECT kind, upper(label) AS label FROM {of}"
    )
    assert of_labels(connection) == ("stale", 1)
    add(connection, ("2024-01-01", "a", 3, 7))  # fires over the new definition
    assert ("X", 1) in rows(connection, BY_LABEL)
    connection.execute("SYSTEM REPLAY VIEW label_mv STALE")
    assert rows(connection, BY_LABEL) == rows(connection, COUNTED) == [("X", 2), ("Y", 1)]
    connection.execute("SYSTEM RECONCILE VIEW label_mv")
    assert of_labels(connection) == ("proven", 0)


def test_a_plain_view_that_means_the_same_makes_nothing_stale(connection: Connection) -> None:
    for statement in LABELS:
        connection.execute(statement)
    connection.execute("SYSTEM RECONCILE VIEW label_mv")
    connection.execute("CREATE OR REPLACE VIEW short AS SELECT b.kind, b.label FROM below AS b")
    assert of_labels(connection) == ("proven", 0)


def test_a_replaced_plain_view_may_read_another_table(connection: Connection) -> None:
    for statement in LABELS:
        connection.execute(statement)
    connection.execute("CREATE TABLE others AS labels")
    connection.execute("CREATE OR REPLACE VIEW below AS SELECT kind, label FROM others")
    connection.execute("SYSTEM REPLAY VIEW label_mv STALE")
    assert rows(connection, BY_LABEL) == rows(connection, COUNTED) == [("", 2)]
    connection.execute("DROP TABLE labels")  # no view reads it any more
    connection.execute("INSERT INTO others VALUES ('a', 'z')")
    assert of_labels(connection) == ("stale", 1)
    connection.execute("SYSTEM REPLAY VIEW label_mv STALE")
    assert rows(connection, BY_LABEL) == rows(connection, COUNTED)


@pytest.mark.parametrize(
    "replacement",
    [
        "TABLE below ENGINE = MergeTree ORDER BY kind AS SELECT kind, upper(label) AS label FROM labels",
        "TABLE below ENGINE = Memory AS SELECT kind, upper(label) AS label FROM labels",
        "VIEW labels AS SELECT 'a' AS kind, 'X' AS label UNION ALL SELECT 'b', 'Y'",
        "TABLE labels ENGINE = Memory AS SELECT 'a' AS kind, 'X' AS label UNION ALL SELECT 'b', 'Y'",
    ],
)
def test_a_dimension_becomes_another_kind_of_object(
    connection: Connection, replacement: str
) -> None:
    for statement in LABELS:
        connection.execute(statement)
    connection.execute(f"CREATE OR REPLACE {replacement}")
    assert of_labels(connection) == ("stale", 1)
    add(connection, ("2024-01-01", "a", 3, 7))
    connection.execute("SYSTEM REPLAY VIEW label_mv STALE")
    assert rows(connection, BY_LABEL) == rows(connection, COUNTED) == [("X", 2), ("Y", 1)]
    connection.execute("SYSTEM RECONCILE VIEW label_mv")
    assert of_labels(connection) == ("proven", 0)
    kind, name = replacement.split()[:2]
    if kind == "TABLE":  # and a change of the new table is told
        connection.execute(f"INSERT INTO {name} VALUES ('a', 'Z')")
        assert of_labels(connection) == ("stale", 1)
        back = f"VIEW {name} AS SELECT 'a' AS kind, 'q' AS label"
        connection.execute(f"CREATE OR REPLACE {back}")
        connection.execute("SYSTEM REPLAY VIEW label_mv STALE")
        assert rows(connection, BY_LABEL) == rows(connection, COUNTED) == [("", 1), ("q", 2)]


@pytest.mark.parametrize("name", ["events", "by_label"])
def test_a_source_or_target_becomes_no_view(connection: Connection, name: str) -> None:
    for statement in LABELS:
        connection.execute(statement)
    with pytest.raises(HaveDependentObjects, match="label_mv"):
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM labels")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT kind FROM labels", "label"),
        ("SELECT kind, [label] AS label FROM labels", "label"),
        ("SELECT kind, toString(now()) AS label FROM labels", "now"),
        ("SELECT 'a' AS kind, toString(n) AS label FROM by_label", "by_label"),
    ],
)
def test_a_plain_view_that_a_trigger_cannot_follow_is_not_replaced(
    connection: Connection, query: str, why: str
) -> None:
    for statement in LABELS:
        connection.execute(statement)
    with pytest.raises(HaveDependentObjects, match=f"label_mv.*{why}"):
        connection.execute(f"CREATE OR REPLACE VIEW short AS {query}")
    assert of_labels(connection) == ("covered", 0)


@pytest.mark.parametrize(
    "replacement", ["VIEW short AS SELECT kind FROM labels", "TABLE labels (kind String)"]
)
def test_a_kept_version_that_forbids_a_replacement_is_named_as_one(
    connection: Connection, replacement: str
) -> None:
    for statement in LABELS:
        connection.execute(statement)
    connection.execute(
        "SYSTEM REBUILD VIEW label_mv AS SELECT d.kind AS label, count() AS n"
        " FROM events AS e LEFT JOIN short AS d USING (kind) GROUP BY label"
    )
    if replacement.startswith("TABLE"):
        connection.execute("CREATE OR REPLACE VIEW below AS SELECT kind, 'x' AS label FROM labels")
        connection.execute(
            "ALTER TABLE label_mv__v1 MODIFY QUERY SELECT l.label AS label,"
            " count() AS n FROM events AS e LEFT JOIN labels AS l USING (kind) GROUP BY label"
        )
        replacement += " ENGINE = MergeTree ORDER BY kind"
    with pytest.raises(Error, match=r"DROP VIEW default.label_mv__v1: the last REBUILD replaced"):
        connection.execute(f"CREATE OR REPLACE {replacement}")
    connection.execute("DROP VIEW label_mv__v1")
    connection.execute(f"CREATE OR REPLACE {replacement}")


def test_an_insert_meets_the_replacement_of_a_plain_view(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        make(first)
        for statement in LABELS:
            first.execute(statement)
        race = Race(first, second)
        replacement = "CREATE OR REPLACE VIEW short AS SELECT kind, 'q' AS label FROM below"
        assert race.run("INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)", replacement)
        assert race.ask("SELECT * FROM by_label") == [("q", 1)]
        replacement = replacement.replace("'q'", "'r'")
        assert race.run(replacement, "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)")
        race.ask("SYSTEM REPLAY VIEW label_mv STALE")
        assert race.ask(BY_LABEL) == [("r", 2)]


@pytest.mark.parametrize("statement", [REPLACE, INNER.format(2)])
def test_an_insert_that_fired_the_old_view_fires_the_new_one(
    tmp_path: Path, statement: str
) -> None:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        make(first)
        first.execute(INNER.format(1))
        race = Race(first, second)
        assert race.run("INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)", statement)
        assert race.ask("SELECT name, gap_rows, bypass_rows FROM system.views") == [
            ("daily_mv", 0, 0),
            ("kinds", 0, 0),
        ]
        assert race.ask("SELECT sum(total) FROM daily") == [(9,)]


def test_it_meets_others(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        make(first)
        race = Race(first, second)
        assert race.run(REPLACE, "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)")
        assert race.ask("SELECT verdict FROM system.views") == [("bypassed",)]
        assert race.run(REPLACE, "DROP VIEW daily_mv")
        assert race.run(REPLACE, "RENAME TABLE daily_mv TO other")
        assert race.ask("SELECT name FROM system.views") == [("daily_mv",), ("other",)]
