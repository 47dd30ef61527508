"""Several views that write one target: the verdict of each, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BypassRows, HaveDependentObjects
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views")

SUMS = "SELECT k, sum(v) AS v FROM {source} GROUP BY k"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        for name in ("a", "b"):
            opened.execute(f"CREATE TABLE {name} (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("CREATE TABLE void (k UInt8, v Int64) ENGINE = Null")
        opened.execute("CREATE TABLE d (k UInt8, w Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("CREATE TABLE t (k UInt8, v Int64) ENGINE = SummingMergeTree ORDER BY k")
        yield opened


def create(connection: Connection, view: str, source: str, settings: str = "") -> None:
    query = SUMS.format(source=source)
    connection.execute(f"CREATE MATERIALIZED VIEW {view} TO t AS {query} {settings}")


def both(connection: Connection) -> None:
    """Create both views and insert rows for each."""
    create(connection, "va", "a")
    create(connection, "vb", "b")
    connection.execute("INSERT INTO a VALUES (1, 1), (2, 2)")
    connection.execute("INSERT INTO b VALUES (1, 10)")


def of(connection: Connection, view: str) -> dict[str, Any]:
    """Return the view's row of system.views."""
    return dicts(connection, f"SELECT * FROM system.views WHERE name = '{view}'")[0]


def verdicts(connection: Connection) -> dict[str, str]:
    """Return the verdict of each view."""
    return dict(rows(connection, "SELECT name, verdict FROM system.views"))  # type: ignore[arg-type]


def content(connection: Connection) -> list[tuple[Any, ...]]:
    """Return the target's sums by key."""
    return rows(connection, "SELECT k, sum(v) FROM t GROUP BY k ORDER BY k")


def mended(connection: Connection, view: str) -> list[str]:
    """Run the view's mends until none is named; return the verdicts on the way."""
    said: list[str] = []
    for _ in range(4):
        status = of(connection, view)
        said.append(status["verdict"])
        if not status["mend"] or len(said) == 4:
            return said
        connection.execute(status["mend"])
    raise AssertionError(said)


def test_one_comparison_proves_both(connection: Connection) -> None:
    both(connection)
    assert verdicts(connection) == {"va": "covered", "vb": "covered"}
    assert mended(connection, "va") == ["covered", "proven"]
    assert verdicts(connection) == {"va": "proven", "vb": "proven"}


def at_insert(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW vb TO t AS SELECT b.k AS k, sum(b.v * d.w) AS v FROM b"
        " LEFT JOIN d ON b.k = d.k GROUP BY k SETTINGS dimensions = 'at_insert'"
    )


def test_beside_one_that_cannot_be_proven_the_other_is(connection: Connection) -> None:
    """Merges keep the rows of different views apart, so each view is compared with its own rows."""
    connection.execute("INSERT INTO d VALUES (1, 2), (5, 1)")
    create(connection, "va", "a")
    at_insert(connection)
    connection.execute("INSERT INTO a VALUES (1, 1)")
    connection.execute("INSERT INTO b VALUES (1, 10), (5, 5)")
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert mended(connection, "va") == ["covered", "proven"]
    assert (of(connection, "vb")["verdict"], of(connection, "vb")["mend"]) == ("unproven", "")
    connection.execute("DELETE FROM b WHERE k = 5")  # an at_insert view does not become stale
    assert verdicts(connection) == {"va": "proven", "vb": "unproven"}  # its rows are other ones
    assert mended(connection, "vb") == ["unproven", "unproven"]
    assert content(connection) == [(1, 21)]
    connection.execute("DELETE FROM a WHERE k = 1")
    assert mended(connection, "va") == ["stale", "covered", "proven"]
    assert content(connection) == [(1, 20)]
    connection.execute("INSERT INTO t VALUES (3, 3)")
    assert mended(connection, "va") == ["bypassed", "covered", "proven"]
    connection.execute("DROP VIEW vb")
    assert mended(connection, "va") == ["bypassed", "covered", "proven"]
    assert content(connection) == []


def test_what_is_wrong_beside_one_that_cannot_be_proven_is_found(connection: Connection) -> None:
    create(connection, "va", "a")
    create(connection, "vn", "void")
    connection.execute("INSERT INTO a VALUES (1, 1)")
    connection.execute("INSERT INTO void VALUES (1, 100), (2, 200)")
    connection.execute("INSERT INTO t VALUES (1, 5)")
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW va")
    assert (row["verdict"], row["differing"], row["extra"]) == ("different", 1, 0)


def test_what_makes_one_stale_makes_the_target_stale(connection: Connection) -> None:
    both(connection)
    connection.execute("DELETE FROM b WHERE k = 1")
    assert verdicts(connection) == {"va": "stale", "vb": "stale"}
    assert of(connection, "va")["mend"] == "SYSTEM REPLAY VIEW default.va STALE"
    connection.execute("SYSTEM REPLAY VIEW va STALE")
    assert verdicts(connection) == {"va": "covered", "vb": "covered"}
    assert content(connection) == [(1, 1), (2, 2)]
    assert mended(connection, "vb") == ["covered", "proven"]


def test_another_definition_of_one_makes_the_target_stale(connection: Connection) -> None:
    both(connection)
    connection.execute("ALTER TABLE vb MODIFY QUERY SELECT k, sum(2 * v) AS v FROM b GROUP BY k")
    assert verdicts(connection) == {"va": "stale", "vb": "stale"}
    assert mended(connection, "va") == ["stale", "covered", "proven"]
    assert content(connection) == [(1, 21), (2, 2)]


def test_the_gap_of_one_is_its_own(connection: Connection) -> None:
    """The target holds what both views make of the rows that each has seen."""
    both(connection)
    connection.execute("DETACH VIEW vb")
    connection.execute("INSERT INTO b VALUES (2, 20)")
    assert verdicts(connection) == {"va": "covered", "vb": "partial"}
    assert mended(connection, "va")[-1] == "proven"
    assert mended(connection, "vb") == ["partial", "covered", "proven"]
    assert content(connection) == [(1, 11), (2, 22)]


def test_a_dropped_view_s_own_parts_are_bypass(connection: Connection) -> None:
    both(connection)
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("DROP VIEW vb")
    status = of(connection, "va")
    assert (status["verdict"], status["bypass_rows"]) == ("bypassed", 1)
    assert mended(connection, "va") == ["bypassed", "covered", "proven"]
    assert content(connection) == [(1, 1), (2, 2)]


def test_rows_by_hand_may_be_what_the_other_missed(connection: Connection) -> None:
    connection.execute("INSERT INTO b VALUES (1, 10)")
    both(connection)
    connection.execute("INSERT INTO t VALUES (1, 10)")
    assert of(connection, "va")["mend"] == "SYSTEM ADOPT VIEW default.vb"
    assert mended(connection, "va") == ["bypassed", "proven"]
    assert verdicts(connection) == {"va": "proven", "vb": "proven"}


def test_rows_by_hand_that_are_nobody_s(connection: Connection) -> None:
    connection.execute("INSERT INTO b VALUES (1, 10)")
    both(connection)
    connection.execute("INSERT INTO t VALUES (1, 11)")
    with pytest.raises(BypassRows):
        connection.execute(of(connection, "va")["mend"])
    assert of(connection, "va")["mend"] == "SYSTEM REPLAY VIEW default.va DISCARD BYPASS"
    assert of(connection, "vb")["mend"] == "SYSTEM BACKFILL VIEW default.vb DISCARD BYPASS"
    assert mended(connection, "vb") == ["bypassed", "covered", "proven"]


def test_stale_beside_what_the_other_missed(connection: Connection) -> None:
    """Rows by hand may be the other view's gap, so ADOPT comes before their removal. It is refused;
    DISCARD BYPASS removes them and replays everything."""
    connection.execute("INSERT INTO b VALUES (1, 10)")
    both(connection)
    connection.execute("DELETE FROM a WHERE k = 1")
    connection.execute("INSERT INTO t VALUES (1, 11)")
    status = of(connection, "va")
    assert (status["verdict"], status["mend"]) == ("stale", "SYSTEM ADOPT VIEW default.vb")
    with pytest.raises(BypassRows):
        connection.execute(status["mend"])
    assert of(connection, "va")["mend"] == "SYSTEM REPLAY VIEW default.va DISCARD BYPASS"
    assert mended(connection, "va") == ["stale", "covered", "proven"]


def test_beside_a_null_source_the_other_is_replayed_alone(connection: Connection) -> None:
    connection.execute("INSERT INTO a VALUES (3, 3)")
    create(connection, "va", "a")
    create(connection, "vn", "void")
    connection.execute("INSERT INTO a VALUES (1, 1)")
    connection.execute("INSERT INTO void VALUES (1, 100)")
    assert mended(connection, "va") == ["partial", "covered", "proven"]
    assert content(connection) == [(1, 101), (3, 3)]
    connection.execute("DELETE FROM a WHERE k = 1")
    (row,) = dicts(connection, "SYSTEM REPLAY VIEW va STALE")
    assert (row["rows_before"], row["rows_after"]) == (2, 1)
    assert mended(connection, "va") == ["covered", "proven"]
    assert content(connection) == [(1, 100), (3, 3)]
    status = of(connection, "vn")
    assert (status["verdict"], status["mend"]) == ("unproven", "")


def test_a_new_version_of_one_is_refused(connection: Connection) -> None:
    both(connection)
    with pytest.raises(HaveDependentObjects, match=r"default\.vb writes its target"):
        connection.execute("SYSTEM REBUILD VIEW va")


def test_truncate_is_the_gap_of_both(connection: Connection) -> None:
    both(connection)
    connection.execute("TRUNCATE TABLE t")
    for view in ("va", "vb"):
        assert mended(connection, view)[-1] == "proven"
    assert content(connection) == [(1, 11), (2, 2)]
