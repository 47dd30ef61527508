"""Random graphs of views that write tables which other views join: covered views are right.

Views read the source and each other's targets, under names in any order. Dimension circles occur
where CREATE allows them. After every statement, each target whose views are all `covered` equals
their queries over the current tables. At the end `mend` is run."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import rows, verdict

pytestmark = pytest.mark.feature("views")

TABLES = ("s", "h1", "h2", "h3", "h4")
QUERIES = (
    "SELECT o.k AS k, o.x + d.x AS x FROM {source} AS o LEFT JOIN {joined} AS d ON o.k = d.k",
    "SELECT o.k AS k, o.x + 1 AS x FROM {source} AS o INNER JOIN {joined} AS d ON o.k = d.k AND d.x < 5",
    "SELECT k, x + 10 AS x FROM {source} WHERE k IN (SELECT k FROM {joined})",
    "SELECT k, x + (SELECT max(x) FROM {joined}) AS x FROM {source} WHERE x < 3",
    "SELECT (k + 1) % 4 AS k, x FROM {source} WHERE x > 1",
)
SETTINGS = (
    "max_insert_block_size = 2, max_block_size = 2, min_insert_block_size_rows = 0, "
    "min_insert_block_size_bytes = 0"
)


def some_views(chance: random.Random) -> dict[str, tuple[str, str]]:
    """Draw targets and queries by view name. A source precedes its target, so no view triggers
    itself."""
    made: dict[str, tuple[str, str]] = {}
    for number in range(chance.randrange(2, 5)):
        source = chance.randrange(0, 3)
        target = chance.randrange(source + 1, len(TABLES))
        joined = chance.choice([one for one in range(len(TABLES)) if one not in (source, target)])
        query = chance.choice(QUERIES).format(source=TABLES[source], joined=f"{{{joined}}}")
        plain = chance.random() < 0.3
        name = TABLES[joined] + ("_plain" if plain else "")
        made[f"{chance.choice('abcdef')}{number}"] = (
            TABLES[target],
            query.replace(f"{{{joined}}}", name),
        )
    return made


def some_rows(chance: random.Random) -> str:
    return ", ".join(
        f"({chance.randrange(4)}, {chance.randrange(4)})" for _ in range(chance.randrange(1, 6))
    )


def some_statement(chance: random.Random, views: list[str]) -> str:
    settings = chance.choice(
        ["", "parallel_view_processing = 1, ", "materialized_views_ignore_errors = 1, "]
    )
    values = f"FROM VALUES('k UInt64, x Int64', {some_rows(chance)})"
    return chance.choice(
        [
            f"INSERT INTO s SELECT * {values} SETTINGS {settings}{SETTINGS}",
            f"INSERT INTO s SELECT * {values} SETTINGS {settings}{SETTINGS}",
            f"INSERT INTO s VALUES {some_rows(chance)}",
            f"DELETE FROM s WHERE k = {chance.randrange(4)}",
            f"SYSTEM BACKFILL VIEW {chance.choice(views)} SETTINGS backfill_staging = {chance.randrange(2)}",
            f"SYSTEM REPLAY VIEW {chance.choice(views)}",
            f"DETACH VIEW {chance.choice(views)}",
            f"ATTACH VIEW {chance.choice(views)}",
            "OPTIMIZE TABLE s FINAL",
        ]
    )


def wrong(connection: Connection, views: dict[str, tuple[str, str]]) -> list[str]:
    """Return the targets that differ from their views' queries although all these views are
    covered."""
    found: list[str] = []
    for target in {target for target, _ in views.values()}:
        mine = {name: query for name, (into, query) in views.items() if into == target}
        if {verdict(connection, name) for name in mine} - {"covered", "proven"}:
            continue
        wanted = Counter(row for query in mine.values() for row in rows(connection, query))
        if wanted != Counter(rows(connection, f"SELECT k, x FROM {target}")):
            found.append(target)
    return found


@pytest.mark.parametrize("seed", [*range(40), 352])
def test_what_is_covered_is_right(seed: int) -> None:
    chance = random.Random(seed)
    with olapdb.connect() as connection:
        partition = chance.choice(["", "PARTITION BY k % 2"])
        for name in TABLES:
            connection.execute(
                f"CREATE TABLE {name} (k UInt64, x Int64) ENGINE = MergeTree ORDER BY k {partition}"
            )
            connection.execute(f"CREATE VIEW {name}_plain AS SELECT k, x FROM {name} WHERE x < 9")
        views: dict[str, tuple[str, str]] = {}
        if chance.random() < 0.3:
            connection.execute(f"INSERT INTO s VALUES {some_rows(chance)}")
        for name, (target, query) in some_views(chance).items():
            try:
                connection.execute(f"CREATE MATERIALIZED VIEW {name} TO {target} AS {query}")
            except olapdb.Error:
                continue  # refused: a circle
            views[name] = (target, query)
        told: list[str] = []
        for _ in range(6):
            if not views:
                return
            told.append(some_statement(chance, list(views)))
            try:
                connection.execute(told[-1])
            except olapdb.Error as error:
                told[-1] += f"  -- {type(error).__name__}: {error}"
            assert not wrong(connection, views), "\n".join((*map(str, views.items()), *told))
