"""Joins that make only what is read above them: equal answers however they run, and less work."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pyarrow as pa
import pytest

import olapdb
from olapdb.config import tuning
from olapdb.execute.operators import join_pairs
from olapdb.execute.operators.join_outputs import EVERYTHING

pytestmark = pytest.mark.feature("select", "aggregates")

QUERIES = [
    "SELECT c.name, count(), sum(l.price) FROM l JOIN c ON l.c = c.id GROUP BY c.name",
    "SELECT c.name, count() FROM l LEFT JOIN c ON l.c = c.id GROUP BY c.name",
    "SELECT c.maybe, count() FROM l LEFT JOIN c ON l.c = c.id GROUP BY c.maybe",
    "SELECT c.maybe, count() FROM l LEFT JOIN c ON l.c = c.id GROUP BY c.maybe SETTINGS join_use_nulls = 1",
    "SELECT n.name, c.name, sum(price) FROM l JOIN c ON l.c = c.id JOIN n ON c.n = n.id GROUP BY ALL",
    "SELECT n.name, max(c.name), uniqExact(c.name) FROM l JOIN c ON l.c = c.id JOIN n ON c.n = n.id GROUP BY n.name",
    "SELECT s.name, n.name, count() FROM l JOIN s ON l.c = s.id JOIN n ON s.n = n.id GROUP BY ALL",
    "SELECT s.name, n.name, count() FROM l JOIN s ON l.c = s.id CROSS JOIN n GROUP BY ALL",
    "SELECT s.name, n.name, count() FROM l JOIN s ON l.c = s.id LEFT JOIN n ON n.id < 4 GROUP BY ALL",
    "SELECT s.name, count() FROM l JOIN s ON l.c = s.id JOIN n ON [s.n] = [n.id] GROUP BY s.name",
    "SELECT upper(c.name) AS u, countIf(c.name LIKE '%1%') FROM l JOIN c ON l.c = c.id GROUP BY u",
    "SELECT concat(c.name, n.name) AS u, count() FROM l JOIN c ON l.c = c.id JOIN n ON c.n = n.id GROUP BY u",
    "SELECT c.name, count() FROM l JOIN c ON l.c = c.id AND l.text != c.name GROUP BY c.name",
    "SELECT n.name, count() FROM l ANY LEFT JOIN n ON l.c = n.id GROUP BY n.name",
    "SELECT c.name, count() FROM l RIGHT JOIN c ON l.c = c.id GROUP BY c.name",
    "SELECT c.name, count() FROM l FULL JOIN c ON l.c = c.id GROUP BY c.name",
    "SELECT l.text, count() FROM l SEMI JOIN c ON l.c = c.id AND c.name != l.text GROUP BY l.text",
    "SELECT l.text, count() FROM l ANTI JOIN c ON l.c = c.id GROUP BY l.text",
    "SELECT n.name, count() FROM (SELECT c.n AS k FROM l JOIN c ON l.c = c.id) AS x JOIN n ON x.k = n.id GROUP BY n.name",
    "SELECT o.text, count() FROM l JOIN c ON l.text = c.name JOIN l AS o ON o.c = c.id WHERE l.price < 60 GROUP BY o.text",
    "SELECT c.name, count() FROM l CROSS JOIN c WHERE l.c < 3 GROUP BY c.name",
    "SELECT count() FROM l JOIN c ON l.c = c.id",
    "SELECT c.name AS a, c.name AS b, count() FROM l JOIN c ON l.c = c.id GROUP BY a, b, c.name || 'x'",
    "SELECT c.name, count() FROM l JOIN c ON l.c = c.id GROUP BY ROLLUP(c.name)",
    "SELECT c.name, count() FROM l JOIN c ON l.c = c.id GROUP BY c.name WITH TOTALS HAVING c.name != 'name 2'",
    "SELECT c.name, count() FROM l ASOF JOIN c ON l.c = c.id AND l.price >= c.n GROUP BY c.name",
]
SPILLING = {"max_bytes_before_external_join": 1, "max_block_size": 32}
SMALL_BATCHES = {"max_block_size": 9}


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    """Rows `l` that refer to `c`, some to none of them, which refer to `n`."""
    with olapdb.connect() as opened:
        opened.execute(
            "CREATE TABLE l ENGINE = MergeTree ORDER BY c AS SELECT toInt32(number % 23) AS c, "
            "number AS price, concat('name ', toString(number % 5)) AS text FROM numbers(400)"
        )
        opened.execute(
            "CREATE TABLE c ENGINE = MergeTree ORDER BY id AS SELECT toInt32(number % 19) AS id, "
            "number % 3 AS n, concat('name ', toString(number % 7)) AS name, "
            "if(number % 4 = 0, NULL, name) AS maybe FROM numbers(25)"
        )
        opened.execute(
            "CREATE TABLE n ENGINE = MergeTree ORDER BY id AS SELECT number AS id, "
            "concat('nation ', toString(number % 2)) AS name FROM numbers(30)"
        )
        opened.execute(
            "CREATE TABLE s ENGINE = MergeTree ORDER BY id AS SELECT id, n, name FROM c LIMIT 5"
        )
        yield opened


@pytest.fixture(scope="module")
def limited(connection: olapdb.Connection) -> Iterator[list[olapdb.Connection]]:
    """Connect to the same tables with joins on disk, and with small batches."""
    with (
        olapdb.connect(settings=SPILLING) as spilling,
        olapdb.connect(settings=SMALL_BATCHES) as small_batches,
    ):
        for table in "lcns":
            copy = connection.execute(f"SELECT * FROM {table}").fetch_arrow_table()
            create = connection.execute(f"SHOW CREATE TABLE {table}").fetchall()[0][0]
            for other in (spilling, small_batches):
                other.execute(create)
                other.insert(table, copy)
        yield [spilling, small_batches]


def rows(connection: olapdb.Connection, sql: str) -> list[str]:
    return sorted(map(repr, connection.execute(sql).fetchall()))


@pytest.mark.parametrize("sql", QUERIES)
def test_the_answer_is_that_of_a_join_that_makes_everything(
    connection: olapdb.Connection, limited: list[olapdb.Connection], sql: str
) -> None:
    with (
        patch("olapdb.execute.run.wanted_by", lambda project, coded: EVERYTHING),
        patch("olapdb.execute.run.Wanted", lambda columns, coded: EVERYTHING),
    ):
        expected = rows(connection, sql)
    assert rows(connection, sql) == expected
    with patch.multiple(tuning, JOIN_FILTER_ROWS_MIN=0, LEFT_FIRST_FACTOR=0, INDEXED_VALUES_MIN=1):
        assert rows(connection, sql) == expected
    with patch.multiple(tuning, **tuning.EAGER):
        assert rows(connection, sql) == expected
    for other in limited:
        assert rows(other, sql) == expected


def test_pairs_have_the_columns_that_are_read(connection: olapdb.Connection) -> None:
    made: list[pa.Schema] = []
    pair_rows = join_pairs.pair_rows

    def watched(*arguments: object) -> pa.RecordBatch:
        made.append((batch := pair_rows(*arguments)).schema)  # type: ignore[arg-type]
        return batch

    with patch.object(join_pairs, "pair_rows", watched):
        connection.execute(
            "SELECT n.name, sum(price) FROM l JOIN c ON l.c = c.id JOIN n ON c.n = n.id GROUP BY n.name"
        ).fetchall()
    columns = [list(zip(schema.names, schema.types, strict=True)) for schema in made]
    assert columns
    assert all(len(pairs) <= 2 for pairs in columns)
    texts = [arrow for pairs in columns for name, arrow in pairs if name.startswith("name")]
    assert texts
    assert all(map(pa.types.is_dictionary, texts))
