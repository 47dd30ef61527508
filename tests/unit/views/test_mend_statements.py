"""The statements of `system.views.mend`, run unchanged: names, other readers, DISCARD BYPASS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, BypassRows
from tests.unit.views.warehouse import dicts, rows

NAMES = [("a b", "c d"), ("it's", "v.w"), ("back`tick", "sl\\ash"), ("ü", "1")]


pytestmark = [
    pytest.mark.warehouse(merges=False, on_disk=True),
    pytest.mark.feature("views", "reconcile"),
]


def quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def make(connection: Connection, database: str, view: str) -> None:
    """Create a view over `s` into `t` with a gap of two rows."""
    where = quoted(database)
    connection.execute(f"CREATE DATABASE {where}")
    connection.execute(f"CREATE TABLE {where}.s (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        f"CREATE TABLE {where}.t (k UInt8, v Int64) ENGINE = SummingMergeTree ORDER BY k"
    )
    connection.execute(f"INSERT INTO {where}.s VALUES (1, 1), (2, 2)")
    connection.execute(
        f"CREATE MATERIALIZED VIEW {where}.{quoted(view)} TO {where}.t AS"
        f" SELECT k, sum(v) AS v FROM {where}.s GROUP BY k"
    )


def status(connection: Connection) -> dict[str, Any]:
    """Return the only view's verdict, reason and mend."""
    return dicts(connection, "SELECT verdict, reason, mend FROM system.views")[0]


@pytest.mark.parametrize(("database", "view"), NAMES)
def test_names_are_quoted(connection: Connection, database: str, view: str) -> None:
    make(connection, database, view)
    connection.execute(f"INSERT INTO {quoted(database)}.t VALUES (1, 5)")
    name = f"{quoted(database)}.{quoted(view)}"
    assert status(connection)["mend"] == f"SYSTEM ADOPT VIEW {name}"
    with pytest.raises(BypassRows) as refused:
        connection.execute(status(connection)["mend"])
    assert f"SYSTEM REPLAY VIEW {name} DISCARD BYPASS" in refused.value.hint
    for mend in (f"BACKFILL VIEW {name} DISCARD BYPASS", f"RECONCILE VIEW {name}"):
        assert status(connection)["mend"] == f"SYSTEM {mend}"
        connection.execute(status(connection)["mend"])
    assert status(connection)["verdict"] == "proven"


def test_a_reader_that_cannot_write_is_told_the_same(
    connection: Connection, tmp_path: Path
) -> None:
    make(connection, "d", "v")
    told = status(connection)
    connection.close()  # one process opens a warehouse in one way
    with olapdb.connect(str(tmp_path / "warehouse"), read_only=True) as reader:
        assert status(reader) == told
        assert told["mend"] == "SYSTEM BACKFILL VIEW d.v"


def test_a_backfill_that_discards_rows_by_hand_first(connection: Connection) -> None:
    make(connection, "d", "v")
    connection.execute("INSERT INTO d.t VALUES (1, 5), (7, 7)")
    (row,) = connection.views["d.v"].backfill(discard_bypass=True)
    assert (row.status, row.rows) == ("published", 2)
    assert rows(connection, "SELECT k, sum(v) FROM d.t GROUP BY k ORDER BY k") == [(1, 1), (2, 2)]
    assert status(connection)["verdict"] == "covered"
    assert connection.views["d.v"].backfill(discard_bypass=True) == ()


@pytest.mark.parametrize("rest", ["PARTITION tuple() DISCARD BYPASS", "DISCARD BYPASS DRY RUN"])
def test_what_such_a_backfill_does_not_take(connection: Connection, rest: str) -> None:
    make(connection, "d", "v")
    connection.execute("INSERT INTO d.t VALUES (1, 5)")
    with pytest.raises(BadArguments):
        connection.execute(f"SYSTEM BACKFILL VIEW d.v {rest}")
    assert rows(connection, "SELECT * FROM d.t") == [(1, 5)]


def test_stale_and_missed_beside_rows_by_hand(connection: Connection) -> None:
    """ADOPT comes first and is refused; then one statement mends all three."""
    make(connection, "d", "v")
    connection.execute("INSERT INTO d.s VALUES (3, 3), (4, 4)")
    connection.execute("DELETE FROM d.s WHERE k = 3")
    connection.execute("INSERT INTO d.t VALUES (1, 5)")
    found = status(connection)
    assert (found["verdict"], found["mend"]) == ("stale", "SYSTEM ADOPT VIEW d.v")
    assert found["reason"] == (
        "Stale by DELETE. 1 rows of the target (in all) were made by no view. It has not seen 2 rows."
    )
    with pytest.raises(BypassRows):
        connection.execute(found["mend"])
    found = status(connection)
    assert found["mend"] == "SYSTEM BACKFILL VIEW d.v DISCARD BYPASS"
    assert "DISCARD BYPASS removes them." in found["reason"]
    connection.execute(found["mend"])
    connection.execute("SYSTEM RECONCILE VIEW d.v")
    assert status(connection) == {"verdict": "proven", "reason": "", "mend": ""}
    assert rows(connection, "SELECT k, sum(v) FROM d.t GROUP BY k ORDER BY k") == [
        (1, 1),
        (2, 2),
        (4, 4),
    ]


def test_a_partition_whose_sums_are_zero_is_proven(connection: Connection) -> None:
    """The parts hold rows until they are merged, though a reader of FINAL sees none."""
    connection.execute("CREATE TABLE s (k UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE TABLE t (k UInt8, v Int64) ENGINE = SummingMergeTree PARTITION BY k ORDER BY k"
    )
    connection.execute("CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(v) AS v FROM s GROUP BY k")
    connection.execute("INSERT INTO s VALUES (2, -1), (3, 3)")
    connection.execute("INSERT INTO s VALUES (2, 1)")
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert [(r["partition"], r["verdict"], r["keys_compared"]) for r in found] == [
        ("2", "equal", 0),
        ("3", "equal", 1),
    ]
    assert status(connection) == {"verdict": "proven", "reason": "", "mend": ""}
