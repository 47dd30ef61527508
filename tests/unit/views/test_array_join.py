"""Views that unfold arrays: trigger, backfill, invalidation, replay and reconciliation agree."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import AlterOfColumnIsForbidden, SizesOfArraysDoNotMatch, ViewNotProvable
from olapdb.maintenance.check import check_database
from olapdb.views.jobs.source_pruning import parts_reaching_slices
from tests.unit.views.warehouse import rows, verdict

SOURCE = """
    CREATE TABLE posts (id UInt64, day Date, tags Array(String), weights Array(Int64))
    ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY id
"""
TARGET = """
    CREATE TABLE tag_daily (
        day Date, tag String, posts SimpleAggregateFunction(sum, UInt64),
        weight SimpleAggregateFunction(sum, Int64), ids AggregateFunction(uniqExact, UInt64)
    ) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day) ORDER BY (day, tag)
"""
CLAUSE = """
    CREATE MATERIALIZED VIEW tags_mv TO tag_daily AS
    SELECT day, tag, count() AS posts, sum(weight) AS weight, uniqExactState(id) AS ids
    FROM posts ARRAY JOIN tags AS tag, weights AS weight GROUP BY day, tag
"""
FUNCTION = """
    CREATE MATERIALIZED VIEW tags_mv TO tag_daily AS
    SELECT day, pair.1 AS tag, count() AS posts, sum(pair.2) AS weight, uniqExactState(id) AS ids
    FROM (
        SELECT id, day, (tags[n], weights[n]) AS pair
        FROM (SELECT id, day, tags, weights, arrayJoin(arrayEnumerate(tags)) AS n FROM posts)
    ) GROUP BY day, tag
"""
SUBQUERY = """
    CREATE MATERIALIZED VIEW tags_mv TO tag_daily AS
    SELECT day, tag, count() AS posts, sum(weight) AS weight, uniqExactState(id) AS ids
    FROM (SELECT id, day, tag, weight FROM posts ARRAY JOIN tags AS tag, weights AS weight)
    WHERE tag != '' GROUP BY day, tag
"""
READ = """
    SELECT toString(day), tag, sum(posts), sum(weight), uniqExactMerge(ids)
    FROM tag_daily GROUP BY day, tag ORDER BY day, tag
"""
ALL_TAGS = ("red", "blue", "green")


pytestmark = [
    pytest.mark.warehouse(SOURCE, TARGET, merges=False),
    pytest.mark.feature("views", "dimensions", "select"),
]


def expected(connection: Connection) -> list[tuple[object, ...]]:
    """Compute the expected target rows from the source's rows in plain Python."""
    posts, weights, ids = Counter(), Counter(), {}
    for post, day, tags, given in rows(connection, "SELECT id, day, tags, weights FROM posts"):
        for tag, weight in zip(tags, given, strict=True):
            posts[str(day), tag] += 1
            weights[str(day), tag] += weight
            ids.setdefault((str(day), tag), set()).add(post)
    return [(*key, posts[key], weights[key], len(ids[key])) for key in sorted(posts)]


def add(connection: Connection, chance: random.Random, count: int) -> None:
    values = []
    for _ in range(count):
        size = chance.randrange(4)
        tags = [chance.choice(ALL_TAGS) for _ in range(size)]
        weights = [chance.randrange(-5, 6) for _ in range(size)]
        day = f"2024-{chance.randrange(1, 4):02}-{chance.randrange(1, 4):02}"
        values.append(f"({chance.randrange(50)}, '{day}', {tags}, {weights})")
    connection.execute(f"INSERT INTO posts VALUES {', '.join(values)}")


@pytest.mark.parametrize("view", [CLAUSE, FUNCTION, SUBQUERY])
def test_the_life_of_a_view(connection: Connection, view: str) -> None:
    chance = random.Random(7)
    add(connection, chance, 40)
    add(connection, chance, 40)
    connection.execute(view)
    add(connection, chance, 40)
    assert verdict(connection, "tags_mv") == "partial"
    connection.execute("SYSTEM BACKFILL VIEW tags_mv")
    assert rows(connection, READ) == expected(connection)
    connection.execute("DELETE FROM posts WHERE toYYYYMM(day) = 202402 AND id < 20")
    stale = rows(connection, "SELECT DISTINCT partition_id FROM system.view_invalidations")
    assert stale == [("202402",)]
    assert verdict(connection, "tags_mv") == "stale"
    connection.execute("SYSTEM REPLAY VIEW tags_mv STALE")
    assert rows(connection, READ) == expected(connection)
    connection.execute("OPTIMIZE TABLE posts FINAL")
    connection.execute("OPTIMIZE TABLE tag_daily FINAL")
    connection.execute("SYSTEM RECONCILE VIEW tags_mv")
    assert verdict(connection, "tags_mv") == "proven"
    assert rows(connection, READ) == expected(connection)
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def test_a_deletion_of_rows_without_elements_makes_nothing_stale(connection: Connection) -> None:
    connection.execute(CLAUSE)
    connection.execute(
        "INSERT INTO posts VALUES (1, '2024-01-01', [], []), (2, '2024-01-01', ['red'], [1])"
    )
    connection.execute("DELETE FROM posts WHERE id = 1")
    assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]


def test_a_replay_of_a_slice_reads_the_parts_that_can_reach_it(connection: Connection) -> None:
    connection.execute(CLAUSE)
    for month in (1, 2, 3):
        connection.execute(f"INSERT INTO posts VALUES ({month}, '2024-0{month}-01', ['red'], [1])")
    snapshot = connection.session.snapshot()
    view = snapshot.find("default", "tags_mv")
    services = connection.database.services
    parts = parts_reaching_slices(view, snapshot, ["202402"], services)  # type: ignore[arg-type]
    assert [p.partition_id for p in parts] == ["202402"]
    connection.execute("SYSTEM REPLAY VIEW tags_mv PARTITION 202402")
    assert rows(connection, READ) == expected(connection)


def test_arrays_of_unequal_length_land_nothing(connection: Connection) -> None:
    connection.execute(CLAUSE)
    with pytest.raises(SizesOfArraysDoNotMatch, match="tags_mv"):
        connection.execute("INSERT INTO posts VALUES (1, '2024-01-01', ['red'], [1, 2])")
    assert rows(connection, "SELECT count() FROM posts") == [(0,)]


def test_several_blocks_of_one_insert(connection: Connection) -> None:
    connection.execute(CLAUSE)
    connection.execute(
        "INSERT INTO posts SELECT number, toDate('2024-01-01') + number % 40,"
        " arrayMap_, arrayMap_w FROM (SELECT number, ['red', 'blue'] AS arrayMap_,"
        " [toInt64(number), 1] AS arrayMap_w FROM numbers(1000))"
        " SETTINGS max_insert_block_size = 64"
    )
    assert rows(connection, READ) == expected(connection)


def test_a_left_join_keeps_rows_without_elements(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE totals (day Date, tag String, posts UInt64)"
        " ENGINE = SummingMergeTree ORDER BY (day, tag)"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW totals_mv TO totals AS SELECT day, tag, count() AS posts"
        " FROM posts LEFT ARRAY JOIN tags AS tag GROUP BY day, tag"
    )
    connection.execute(
        "INSERT INTO posts VALUES (1, '2024-01-01', [], []), (2, '2024-01-01', ['red'], [1])"
    )
    assert rows(connection, "SELECT tag, posts FROM totals ORDER BY tag") == [("", 1), ("red", 1)]
    connection.execute("SYSTEM RECONCILE VIEW totals_mv")
    assert verdict(connection, "totals_mv") == "proven"


def test_the_definition_follows_a_renamed_source(connection: Connection) -> None:
    connection.execute(CLAUSE)
    connection.execute("RENAME TABLE posts TO entries")
    connection.execute("INSERT INTO entries VALUES (1, '2024-01-01', ['red'], [3])")
    assert rows(connection, "SELECT tag, weight FROM tag_daily") == [("red", 3)]


@pytest.mark.parametrize(
    ("array", "verdict_", "reason"),
    [
        ("splitByChar(',', tags)", "unproven", "joins arrays outside the ORDER BY"),
        ("range(id)", "covered", ""),
    ],
)
def test_a_merging_source_is_marked(
    connection: Connection, array: str, verdict_: str, reason: str
) -> None:
    """A source whose merges change array lengths makes the view unprovable."""
    connection.execute(
        "CREATE TABLE latest (id UInt64, first SimpleAggregateFunction(min, UInt64),"
        " tags SimpleAggregateFunction(max, String)) ENGINE = AggregatingMergeTree ORDER BY id"
    )
    connection.execute(
        "CREATE TABLE mins (id UInt64, n SimpleAggregateFunction(min, UInt64))"
        " ENGINE = AggregatingMergeTree ORDER BY id"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW mins_mv TO mins AS SELECT id, min(first) AS n FROM latest"
        f" ARRAY JOIN {array} AS one GROUP BY id"
    )
    ((found, why),) = rows(connection, "SELECT verdict, reason FROM system.views")
    assert (found, reason in why) == (verdict_, True)


def test_elements_of_a_group_are_refused(connection: Connection) -> None:
    """ARRAY JOIN of a group's elements is refused: each block would unfold its own groups."""
    connection.execute(
        "CREATE TABLE authors (day Date, id UInt64) ENGINE = AggregatingMergeTree ORDER BY (day, id)"
    )
    with pytest.raises(ViewNotProvable, match="arrayJoin of a group"):
        connection.execute(
            "CREATE MATERIALIZED VIEW authors_mv TO authors AS"
            " SELECT day, arrayJoin(groupUniqArray(id)) AS id FROM posts GROUP BY day"
        )


@pytest.mark.parametrize("view", [CLAUSE, FUNCTION])
def test_the_definition_follows_a_renamed_column(connection: Connection, view: str) -> None:
    connection.execute(view)
    connection.execute("ALTER TABLE posts RENAME COLUMN tags TO labels")
    connection.execute("INSERT INTO posts VALUES (1, '2024-01-01', ['red'], [3])")
    assert rows(connection, "SELECT tag, weight FROM tag_daily") == [("red", 3)]
    with pytest.raises(AlterOfColumnIsForbidden, match="tags_mv"):
        connection.execute("ALTER TABLE posts DROP COLUMN labels")


def test_a_view_that_is_detached_and_backfilled_in_chunks(connection: Connection) -> None:
    chance = random.Random(11)
    connection.execute(CLAUSE)
    add(connection, chance, 30)
    connection.execute("DETACH VIEW tags_mv")
    for _ in range(4):
        add(connection, chance, 10)
    connection.execute("ATTACH VIEW tags_mv")
    add(connection, chance, 30)
    for partition in (202401, 202402, 202403):
        connection.execute(f"SYSTEM BACKFILL VIEW tags_mv PARTITION {partition}")
    assert rows(connection, READ) == expected(connection)
    connection.execute("SYSTEM RECONCILE VIEW tags_mv")
    assert verdict(connection, "tags_mv") == "proven"
