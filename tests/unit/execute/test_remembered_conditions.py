"""Which rows of a part a condition keeps is remembered: equal answers, and no condition is evaluated again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.execute.operators.coded_conditions import CodedConditions
from olapdb.maintenance.vacuum import vacuum

pytestmark = pytest.mark.feature("select", "settings", "storage")

GRANULE = 512
ROWS = 6_000

QUERIES = [
    "SELECT count() FROM rows WHERE n = 3",
    "SELECT count(), sum(k), min(t) FROM rows WHERE t LIKE '%7%' AND n != 2",
    "SELECT k, t FROM rows WHERE maybe = 1 AND k % 1000 = 1 ORDER BY k",
    "SELECT count(maybe), count() FROM rows WHERE maybe IS NULL OR n > 5",
    "SELECT sum(k) FROM rows PREWHERE n < 2 WHERE t > 'text 3'",
    "SELECT k, n FROM rows WHERE t LIKE '%9' ORDER BY n DESC, k LIMIT 7",
    "SELECT k FROM rows WHERE n = 4 ORDER BY k LIMIT 3 OFFSET 2",
    "SELECT k FROM rows WHERE k > 5 AND n = 4 LIMIT 3",
    "SELECT n, count() FROM rows WHERE k BETWEEN 1000 AND 1100 AND maybe = 0 GROUP BY n ORDER BY n",
    "SELECT count() FROM rows WHERE toString(k) = t",
    "SELECT uniqExact(t) FROM rows WHERE NOT (n IN (1, 2, 3)) AND toHour(at) = 1",
    "SELECT count() FROM rows WHERE price > 10.5 AND n = 1",
]
CHANGING = [
    "SELECT count() FROM rows WHERE n = 3 AND now() > '2000-01-01 00:00:00'",
    "SELECT count() FROM rows WHERE n IN (SELECT 3)",
    "SELECT count() FROM rows WHERE _part != '' AND n = 3",
]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    """Two parts of several granules."""
    with (
        patch.multiple(
            tuning, REMEMBERED_ROWS_MIN=0, READ_AT_ONCE_ROWS_MAX=0, TASK_ROWS=2 * GRANULE
        ),
        olapdb.connect(tmp_path, settings={"inline_bytes_max": 0}) as opened,
    ):
        opened.execute(
            "CREATE TABLE rows (k UInt32, n UInt8, t String, maybe Nullable(UInt8), at DateTime, price Decimal(9, 2)) "
            f"ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = {GRANULE}"
        )
        for part in range(2):
            opened.execute(
                "INSERT INTO rows SELECT number AS k, number % 7, concat('text ', toString(number % 11)), "
                "if(number % 4 = 0, NULL, number % 2), toDateTime(number * 3600), number / 100 "
                f"FROM numbers({part * ROWS}, {ROWS})"
            )
        yield opened


def masks(connection: olapdb.Connection) -> int:
    return len(connection.session.engine.services.store.cache.masks)


def evaluated(connection: olapdb.Connection, sql: str) -> tuple[list[tuple[object, ...]], int]:
    """Return the answer, and of how many rows conditions were evaluated for it."""
    rows: list[int] = []
    mask = CodedConditions.mask

    def counted(self, batch, kept=None):  # type: ignore[no-untyped-def]
        rows.append(batch.num_rows)
        return mask(self, batch, kept)

    with patch.object(CodedConditions, "mask", counted):
        return connection.execute(sql).fetchall(), sum(rows)


@pytest.mark.parametrize("sql", QUERIES)
def test_remembered_rows_change_no_answer(connection: olapdb.Connection, sql: str) -> None:
    expected = connection.execute(f"{sql} SETTINGS use_query_condition_cache = 0").fetchall()
    assert masks(connection) == 0
    for _ in range(3):
        assert connection.execute(sql).fetchall() == expected


@pytest.mark.parametrize("sql", [sql for sql in QUERIES if "LIMIT" not in sql])
def test_a_condition_is_not_evaluated_again(connection: olapdb.Connection, sql: str) -> None:
    _, first = evaluated(connection, sql)
    assert first > 0
    assert evaluated(connection, sql)[1] == 0
    assert evaluated(connection, f"{sql} SETTINGS use_query_condition_cache = 0")[1] == first


@pytest.mark.parametrize("sql", CHANGING)
def test_conditions_on_more_than_a_part_are_not_remembered(
    connection: olapdb.Connection, sql: str
) -> None:
    for _ in range(2):
        assert evaluated(connection, sql)[1] > 0
    assert masks(connection) == 0


def test_other_columns_of_the_query_use_the_same_rows(connection: olapdb.Connection) -> None:
    evaluated(connection, "SELECT count() FROM rows WHERE n = 3")
    answer, rows = evaluated(connection, "SELECT sum(k), max(t) FROM rows WHERE n = 3")
    expected = sum(k for k in range(2 * ROWS) if k % 7 == 3)
    assert answer == [(expected, "text 9")]
    assert rows == 0


def test_row_groups_that_a_query_did_not_read_are_not_known(connection: olapdb.Connection) -> None:
    narrow = "SELECT count() FROM rows WHERE n = 3 AND k < 600"
    evaluated(connection, narrow)
    evaluated(connection, "SELECT k FROM rows WHERE n = 3 LIMIT 1")
    answer, _ = evaluated(connection, "SELECT count() FROM rows WHERE n = 3")
    assert answer == [(sum(k % 7 == 3 for k in range(2 * ROWS)),)]


def test_changed_rows_and_columns_are_found_anew(connection: olapdb.Connection) -> None:
    sql = "SELECT count() FROM rows WHERE n = 3"
    evaluated(connection, sql)
    connection.execute("ALTER TABLE rows UPDATE n = 3 WHERE k = 0")
    expected = sum(k % 7 == 3 for k in range(2 * ROWS)) + 1
    assert evaluated(connection, sql)[0] == [(expected,)]
    connection.execute("ALTER TABLE rows RENAME COLUMN n TO m")
    connection.execute("ALTER TABLE rows RENAME COLUMN maybe TO n")
    answer = connection.execute("SELECT count() FROM rows WHERE n = 1").fetchall()
    assert answer == [(ROWS,)]
    assert evaluated(connection, "SELECT count() FROM rows WHERE m = 3")[0] == [(expected,)]


def test_drop_forgets_what_was_remembered(connection: olapdb.Connection) -> None:
    sql = "SELECT count() FROM rows WHERE n = 3"
    answer, first = evaluated(connection, sql)
    assert masks(connection) == 2
    connection.execute("SYSTEM DROP QUERY CONDITION CACHE")
    assert masks(connection) == 0
    assert evaluated(connection, sql) == (answer, first)


def test_rows_that_a_bound_drops_are_remembered_as_kept(connection: olapdb.Connection) -> None:
    connection.execute(
        "ALTER TABLE rows UPDATE price = if(n = 3, 0, k + 1) WHERE 1 SETTINGS mutations_sync = 1"
    )
    expected = sum(k % 7 != 3 for k in range(2 * ROWS))
    assert connection.execute(
        "SELECT k, t FROM rows WHERE n != 3 ORDER BY price LIMIT 2"
    ).fetchall() == [(0, "text 0"), (1, "text 1")]
    answer, _ = evaluated(connection, "SELECT count() FROM rows WHERE n != 3")
    assert answer == [(expected,)]


def test_a_setting_that_a_call_follows_is_part_of_it(connection: olapdb.Connection) -> None:
    query = "SELECT count() FROM rows WHERE toJSONString(toUInt64(n)) = '\"3\"'"
    quoted = f"{query} SETTINGS output_format_json_quote_64bit_integers = 1"
    for _ in range(3):
        assert connection.execute(query).fetchall() == [(0,)]
    for _ in range(3):
        assert connection.execute(quoted).fetchall() != [(0,)]


def test_they_leave_with_the_file(connection: olapdb.Connection) -> None:
    cache = connection.session.engine.services.store.cache
    connection.execute("SELECT count() FROM rows WHERE n = 3").fetchall()
    assert len(cache.masks) == 2
    connection.execute("OPTIMIZE TABLE rows FINAL")
    vacuum(connection.session.engine.services, lifetime_seconds=0)
    assert not len(cache.masks)
