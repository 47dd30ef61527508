"""Random changes of dimensions under views of many forms: every slice that differs is invalidated.

After each change the view's query over the whole source is compared with its target, partition by
partition. Partitions that differ must be among the slices that the change invalidated."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views", "dimensions")

KINDS = "abcdefgh"

TARGETS = {
    "sum": "(day Date, label String, w Int64) ENGINE = SummingMergeTree PARTITION BY toYYYYMM(day) "
    "ORDER BY (day, label)",
    "by label": "(label String, w Int64) ENGINE = SummingMergeTree PARTITION BY label ORDER BY label",
    "rows": "(day Date, label String, w Int64) ENGINE = MergeTree PARTITION BY toYYYYMM(day) "
    "ORDER BY (day, label)",
}
QUERIES = {
    "left join": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e LEFT JOIN kinds AS k ON e.kind = k.kind GROUP BY day, label",
    ),
    "inner join": (
        "sum",
        "SELECT e.day AS day, k.label AS label, sum(e.amount) AS w "
        "FROM events AS e INNER JOIN kinds AS k ON e.kind = k.kind GROUP BY day, label",
    ),
    "label of the dimension": (
        "by label",
        "SELECT k.label AS label, sum(e.amount) AS w "
        "FROM events AS e LEFT JOIN kinds AS k ON e.kind = k.kind GROUP BY label",
    ),
    "range": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e INNER JOIN kinds AS k ON e.kind = k.kind AND e.day >= k.since "
        "GROUP BY day, label",
    ),
    "range in WHERE": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e INNER JOIN kinds AS k ON e.kind = k.kind "
        "WHERE e.day >= k.since GROUP BY day, label",
    ),
    "no key": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e INNER JOIN kinds AS k ON e.day >= k.since GROUP BY day, label",
    ),
    "in": (
        "sum",
        "SELECT day, kind AS label, sum(amount) AS w FROM events "
        "WHERE kind IN (SELECT kind FROM kinds WHERE weight > 2) GROUP BY day, label",
    ),
    "not in": (
        "sum",
        "SELECT day, kind AS label, sum(amount) AS w FROM events "
        "WHERE kind NOT IN (SELECT kind FROM kinds) GROUP BY day, label",
    ),
    "in of a value": (
        "sum",
        "SELECT day, kind AS label, "
        "sum(if(kind IN (SELECT kind FROM kinds), amount, 1)) AS w FROM events "
        "GROUP BY day, label",
    ),
    "semi": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount) AS w FROM events AS e "
        "LEFT SEMI JOIN kinds AS k ON e.kind = k.kind GROUP BY day, label",
    ),
    "anti": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount) AS w FROM events AS e "
        "LEFT ANTI JOIN kinds AS k ON e.kind = k.kind GROUP BY day, label",
    ),
    "grouped dimension": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount * k.most) AS w "
        "FROM events AS e LEFT JOIN (SELECT kind, max(weight) AS most FROM kinds "
        "GROUP BY kind HAVING count() > 1) AS k ON e.kind = k.kind GROUP BY day, label",
    ),
    "scalar": (
        "sum",
        "SELECT day, kind AS label, sum(amount * (SELECT max(weight) FROM kinds)) AS w "
        "FROM events GROUP BY day, label",
    ),
    "row by row": (
        "rows",
        "SELECT e.day AS day, k.label AS label, e.amount * k.weight AS w "
        "FROM events AS e LEFT JOIN kinds AS k ON e.kind = k.kind",
    ),
    "two dimensions": (
        "sum",
        "SELECT e.day AS day, l.name AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e LEFT JOIN kinds AS k ON e.kind = k.kind "
        "LEFT JOIN labels AS l ON k.label = l.label GROUP BY day, label",
    ),
    "union": (
        "sum",
        "SELECT day, kind AS label, sum(amount) AS w FROM events GROUP BY day, label "
        "UNION ALL SELECT e.day AS day, k.label AS label, sum(e.amount) AS w FROM events AS e "
        "INNER JOIN kinds AS k ON e.kind = k.kind WHERE k.weight > 1 GROUP BY day, label",
    ),
    "array join": (
        "sum",
        "SELECT e.day AS day, one AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e ARRAY JOIN [e.kind, upper(e.kind)] AS one "
        "INNER JOIN kinds AS k ON e.kind = k.kind GROUP BY day, label",
    ),
    "final": (
        "sum",
        "SELECT e.day AS day, e.kind AS label, sum(e.amount * k.weight) AS w "
        "FROM events AS e LEFT JOIN newest AS k FINAL ON e.kind = k.kind GROUP BY day, label",
    ),
}


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute("SET max_partitions_per_insert_block = 0")
        opened.execute(
            "CREATE TABLE events (day Date, kind String, amount Int64) ENGINE = MergeTree "
            "PARTITION BY toYYYYMM(day) ORDER BY (day, kind)"
        )
        columns = "(kind String, label String, weight Int64, since Date, note String)"
        opened.execute(f"CREATE TABLE kinds {columns} ENGINE = MergeTree ORDER BY kind")
        opened.execute(
            f"CREATE TABLE newest {columns} ENGINE = ReplacingMergeTree(weight) ORDER BY (label)"
        )
        opened.execute(
            "CREATE TABLE labels (label String, name String) ENGINE = MergeTree ORDER BY label"
        )
        yield opened


def some_kinds(random: random.Random) -> str:
    made = [
        f"('{random.choice(KINDS)}', 'l{random.randrange(3)}', {random.randrange(1, 5)}, "
        f"'2024-0{random.randrange(1, 5)}-{random.randrange(1, 28):02}', 'n{random.random()}')"
        for _ in range(random.randrange(1, 4))
    ]
    return ", ".join(made)


def some_change(random: random.Random) -> str:
    kind, label = random.choice(KINDS), f"l{random.randrange(3)}"
    return random.choice(
        [
            f"INSERT INTO kinds VALUES {some_kinds(random)}",
            f"INSERT INTO kinds VALUES {some_kinds(random)}",
            f"INSERT INTO newest VALUES {some_kinds(random)}",
            f"DELETE FROM kinds WHERE kind = '{kind}'",
            f"DELETE FROM kinds WHERE weight = {random.randrange(1, 5)}",
            f"DELETE FROM newest WHERE kind = '{kind}'",
            f"INSERT INTO labels VALUES ('{label}', 'name {random.randrange(3)}')",
            f"DELETE FROM labels WHERE label = '{label}'",
            "TRUNCATE TABLE kinds",
            "OPTIMIZE TABLE kinds FINAL",
        ]
    )


def some_events(random: random.Random) -> str:
    made = [
        f"('2024-0{random.randrange(1, 5)}-{random.randrange(1, 28):02}', '{random.choice(KINDS)}', "
        f"{random.randrange(-3, 9)})"
        for _ in range(random.randrange(1, 9))
    ]
    return f"INSERT INTO events VALUES {', '.join(made)}"


def differing(connection: Connection, form: str) -> set[str]:
    """Return the target's partitions that differ from the query over the whole source."""
    target, query = QUERIES[form]
    names = "label, w" if target == "by label" else "day, label, w"
    keys = names.removesuffix(", w")
    counted = target == "rows"
    partition = "_partition_id" if target == "by label" else "toString(toYYYYMM(day))"
    read = (
        f"SELECT {names} FROM ({query})"
        if counted
        else (f"SELECT {keys}, sum(w) AS w FROM ({query}) GROUP BY {keys} HAVING w != 0")
    )
    there = (
        f"SELECT {names} FROM t"
        if counted
        else (f"SELECT {keys}, sum(w) AS w FROM t GROUP BY {keys} HAVING w != 0")
    )
    expected, actual = Counter(rows(connection, read)), Counter(rows(connection, there))
    wrong = (expected - actual) + (actual - expected)
    if target != "by label":
        return {f"{one[0]:%Y%m}" for one in wrong}
    ids = dict(rows(connection, f"SELECT label, {partition} FROM t"))
    return {str(ids.get(one[0], f"new {one[0]}")) for one in wrong}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", sorted(QUERIES))
def test_what_differs_is_named(connection: Connection, form: str, seed: int) -> None:
    dice = random.Random(f"{form} {seed}")
    target, query = QUERIES[form]
    connection.execute(f"INSERT INTO kinds VALUES {some_kinds(dice)}")
    connection.execute(f"CREATE TABLE t {TARGETS[target]}")
    connection.execute(some_events(dice))
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    connection.execute("SYSTEM BACKFILL VIEW v")
    named = 0
    for _ in range(12):
        connection.execute(some_events(dice))
        assert differing(connection, form) == set()
        change = some_change(dice)
        connection.execute(change)
        stale = {
            p for (p,) in rows(connection, "SELECT partition_id FROM system.view_invalidations")
        }
        wrong = differing(connection, form)
        if None not in stale:
            new = {one for one in wrong if one.startswith("new ")}
            assert wrong - new <= stale, change
            assert not new or len(stale) > len(wrong - new), change
            named += len(wrong)
        if form != "scalar":
            assert None not in stale, change
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]
    assert differing(connection, form) == set()
