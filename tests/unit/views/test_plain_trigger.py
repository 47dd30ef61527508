"""The fast trigger path for a plain plan gives the same rows as the general one, and combining is
skipped only where no rows can combine."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from olapdb.dbapi.connection import Connection
from olapdb.ingest.trigger import BoundView, TriggerContext, bound_view, fire
from olapdb.model.schema import MaterializedView

QUERIES = {
    "group": (
        "SELECT day, kind, count() AS n, avgState(v) AS a FROM s GROUP BY day, kind",
        True,
        True,
    ),
    "filter": (
        "SELECT day, kind, count() AS n, avgState(v) AS a FROM s WHERE v > 3 GROUP BY day, kind",
        True,
        True,
    ),
    "expression": (
        "SELECT toDate(toStartOfMonth(day)) AS day, upper(kind) AS kind, count() AS n, "
        "avgState(toInt32(v + 1)) AS a FROM s GROUP BY day, kind",
        True,
        True,
    ),
    "no row": (
        "SELECT day, kind, count() AS n, avgState(v) AS a FROM s WHERE v > 1000 GROUP BY day, kind",
        True,
        True,
    ),
    "union": (
        "SELECT day, kind, count() AS n, avgState(v) AS a FROM s GROUP BY day, kind UNION ALL "
        "SELECT day, kind, count() AS n, avgState(v) AS a FROM s GROUP BY day, kind",
        False,
        False,
    ),
    "in": (
        "SELECT day, kind, count() AS n, avgState(v) AS a FROM s WHERE kind IN (SELECT kind FROM d) "
        "GROUP BY day, kind",
        False,
        True,
    ),
}
"""(query, whether the plan is plain, whether each key occurs once)"""


pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE s (day Date, kind String, v Int32) ENGINE = MergeTree ORDER BY v",
        "CREATE TABLE d (kind String) ENGINE = MergeTree ORDER BY kind",
        (
            "CREATE TABLE t (day Date, kind String, n SimpleAggregateFunction(sum, UInt64), "
            "a AggregateFunction(avg, Int32)) ENGINE = AggregatingMergeTree ORDER BY (kind, day)"
        ),
        "INSERT INTO d VALUES ('a'), ('b')",
    ),
    pytest.mark.feature("views"),
]


def bound(connection: Connection) -> tuple[BoundView, TriggerContext]:
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    view = snapshot.find("default", "v")
    assert isinstance(view, MaterializedView)
    around = TriggerContext(snapshot, services.store, services.cache)
    return bound_view(view, around), around


@pytest.mark.parametrize("name", sorted(QUERIES))
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_both_ways_give_the_same(connection: Connection, name: str, rows: int) -> None:
    query, plain, unique = QUERIES[name]
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    view, around = bound(connection)
    assert (view.plain, view.unique) == (plain, unique)
    made = connection.execute(
        "SELECT toDate('2024-01-01') + number % 50 AS day, ['a', 'b', 'c'][1 + number % 3] AS kind,"
        f" toInt32(number % 11) AS v FROM numbers({rows})"
    ).fetch_arrow_table()
    block = pa.table(
        [
            pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type)
            for c in made.columns
        ],
        names=made.column_names,
    )
    short, long = (fire(replace(view, plain=way), block, around) for way in (view.plain, False))
    assert short.equals(long)
    if view.unique:
        keys = short.select(["day", "kind"]).to_pylist()
        assert len({tuple(key.values()) for key in keys}) == len(keys)


def test_sums_of_nothing_still_leave_no_row(connection: Connection) -> None:
    """A SummingMergeTree target drops rows of zero, also where keys are unique."""
    connection.execute(
        "CREATE TABLE z (kind String, w Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO z AS SELECT kind, sum(v) AS w FROM s GROUP BY kind"
    )
    connection.execute(
        "INSERT INTO s VALUES ('2024-01-01', 'a', 5), ('2024-01-01', 'a', -5), ('2024-01-01', 'b', 1)"
    )
    assert connection.execute("SELECT * FROM z").fetchall() == [("b", 1)]
