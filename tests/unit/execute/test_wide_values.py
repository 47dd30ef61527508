"""Values that are much larger than what they are made of are computed some rows at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.execute.operators.row_pieces import RowPieces

pytestmark = pytest.mark.feature("settings")

ROWS = 60_000
LIMIT = 16 << 20
BATCH_BYTES = LIMIT // 32


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Connect to a warehouse with a table of short texts."""
    with olapdb.connect(settings={"max_memory_usage": LIMIT, "max_threads": 2}) as connection:
        connection.execute(
            "CREATE TABLE t ENGINE = MergeTree ORDER BY n AS"
            f" SELECT number AS n, toString(number) AS s FROM numbers({ROWS})"
        )
        yield connection


WIDE = (
    "repeat(s, 300)",
    "range(200)",
    "arrayMap(x -> x * n, range(150))",
    "arrayMap(x -> concat(s, toString(x)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])",
    "leftPad(s, 1000)",
    "replaceAll(s, '1', repeat('z', 2000))",
    "if(n % 2 = 0, repeat(s, 200), 'none')",
    "toFixedString(s, 900)",
    f"concat(s, '{'y' * 800}')",
    "arrayWithConstant(100, s)",
)


@pytest.mark.parametrize("expression", WIDE)
def test_batches_of_wide_values_have_few_bytes(connection: Connection, expression: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT n, {expression} AS w FROM t")
        batches = list(cursor.fetch_record_batch())
    assert sum(batch.num_rows for batch in batches) == ROWS
    # How wide the next values are is only guessed from those before.
    assert max(batch.nbytes for batch in batches) <= 12 * BATCH_BYTES
    numbers = pa.chunked_array([batch.column(0) for batch in batches])
    assert numbers.to_pylist() == list(range(ROWS))


def test_wide_values_are_those_of_their_rows(connection: Connection) -> None:
    rows = connection.execute("SELECT n, repeat(s, 50), range(n % 40) FROM t").fetchall()
    assert rows == [(n, str(n) * 50, list(range(n % 40))) for n in range(ROWS)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT sum(length(repeat(s, 100))) FROM t", [(28_889_000,)]),
        ("SELECT max(repeat(s, 100)) FROM t WHERE n < 20", [("9" * 100,)]),
        ("SELECT count() FROM t WHERE repeat(s, 100) LIKE '%99999%' AND n % 2 = 1", [(4,)]),
        ("SELECT n FROM t ORDER BY repeat(s, 100) DESC, n LIMIT 2", [(9999, ), (999,)]),
        ("SELECT uniqExact(repeat(s, 100)), count() FROM t PREWHERE n % 3 = 0", [(20_000, 20_000)]),
        ("SELECT count() FROM (SELECT DISTINCT repeat(s, 100) FROM t)", [(ROWS,)]),
        ("SELECT count() FROM (SELECT n FROM t LIMIT 1 BY repeat(toString(n % 7), 500))", [(7,)]),
        ("SELECT sum(x) FROM t ARRAY JOIN arrayMap(y -> y + length(s), range(20)) AS x", [(17_177_800,)]),
        (
            "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY repeat(toString(n % 7), 200)"
            " ORDER BY n) AS r FROM t)",
            [(8572,)],
        ),
        (
            "SELECT repeat(toString(n % 2), 5) AS k, sum(length(repeat(s, 10))) FROM t GROUP BY k"
            " WITH TOTALS ORDER BY k",
            [("00000", 1_444_450), ("11111", 1_444_450)],
        ),
        ("SELECT count() FROM t WHERE n IN (SELECT n FROM t WHERE length(repeat(s, 99)) = 99)", [(10,)]),
        (
            "SELECT length(any(repeat('x', 20000 + n % 3))), length(groupArray(9)(repeat(s, 2000))) FROM t",
            [(20_000, 9)],
        ),
        ("SELECT (SELECT max(length(repeat(s, 400))) FROM t), 1", [(2000, 1)]),
        (
            "SELECT sum(length(g)), sum(g[1]), sum(g[-1]), sum(c) FROM (SELECT n, count() OVER (ORDER BY n) AS c,"
            " groupArray(n) OVER (ORDER BY n ROWS BETWEEN 300 PRECEDING AND CURRENT ROW) AS g FROM t WHERE n < 9000)",
            [(2_663_850, 37_840_650, 40_495_500, 40_504_500)],
        ),
        (
            "SELECT sum(length(g)), max(g[-1]), uniqExact(p, g) FROM (SELECT n % 3 AS p, arraySort(groupArray(n) OVER"
            " (PARTITION BY n % 3)) AS g FROM t WHERE n < 3000)",
            [(3_000_000, 2999, 3)],
        ),
        (
            "SELECT sum(x), count() FROM t LEFT ARRAY JOIN if(n % 1000 = 0, range(2000), []) AS x",
            [(119_940_000, 179_940)],
        ),
        ("SELECT sum(length(multiIf(n = 1, range(2000), n = 2, range(3000), [n]))) FROM t", [(64_998,)]),
        ("SELECT sum(length(coalesce(if(n % 2, NULL, tuple(s)), tuple(repeat('x', 2000))).1)) FROM t", [(60_144_445,)]),
        (
            "SELECT sum((range(4000), n) IN (SELECT range(4000), number FROM numbers(9))),"
            " sum((range(4000), n % 10) NOT IN (SELECT range(4000), number FROM numbers(9))) FROM t WHERE n < 9000",
            [(9, 900)],
        ),
        ("SELECT sum(has(range(2000), n)), sum(indexOf(range(2000), n)) FROM t WHERE n < 9000", [(2000, 2_001_000)]),
        (
            "SELECT sum(length(arrayConcat((SELECT groupArray(number) FROM numbers(2000)), [n]))) FROM t",
            [(120_060_000,)],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("optimizer", [0, 1])
def test_every_clause_may_have_wide_values(
    connection: Connection, sql: str, expected: list[tuple[object, ...]], optimizer: int
) -> None:
    rows = connection.execute(f"{sql} SETTINGS optimizer = {optimizer}").fetchall()
    assert rows == expected


PEAKS = (
    "SELECT repeat(s, 2000) FROM t",
    "SELECT sum(length(repeat(s, 2000))) FROM t",
    "SELECT max(repeat(s, 2000)) FROM t",
    "SELECT count() FROM t WHERE repeat(s, 2000) LIKE '%77777%'",
    "SELECT arrayMap(x -> x * n, range(1000)) FROM t",
    "SELECT sum(arraySum(arrayMap(x -> x * n, range(1000)))) FROM t",
    "SELECT n FROM t ORDER BY repeat(s, 500) LIMIT 3",
    "SELECT count() FROM (SELECT DISTINCT repeat(s, 500) FROM t)",
    "SELECT sum(x) FROM t LEFT ARRAY JOIN if(n % 1000 = 0, range(5000), []) AS x",
    "SELECT sum(length(if(n % 1000 = 0, range(5000), [n]))) FROM t",
    "SELECT sum(length(if(n % 2 = 0, (SELECT groupArray(number) FROM numbers(2000)), []))) FROM t",
    "SELECT count(), max(x) FROM (SELECT n, (SELECT repeat('x', 10000)) AS x FROM t)",
    "SELECT sum(has(range(5000), n)) FROM t WHERE n < 9000",
    "SELECT sum((range(5000), n) IN (SELECT range(5000), number FROM numbers(9))) FROM t WHERE n < 9000",
    "SELECT max(length(g)) FROM (SELECT groupArray(n) OVER (ORDER BY n ROWS BETWEEN 900 PRECEDING AND CURRENT ROW) AS g"
    " FROM t WHERE n < 30000)",
    "SELECT sum(length(g)) FROM (SELECT groupArray(n) OVER (PARTITION BY n % 2) AS g FROM t WHERE n < 9000)",
    "SELECT sum(equals((SELECT groupArray(number) FROM numbers(5000)), [n])) FROM t",
)


def test_the_peak_of_wide_values_is_bounded() -> None:
    """Measure each query with a pool of its own, in a process of its own."""
    script = f"""
import json, os, sys, pyarrow as pa, olapdb
cursor = olapdb.connect(settings={{"max_threads": 2}}).cursor()
cursor.execute("CREATE TABLE t ENGINE = MergeTree ORDER BY n AS"
    " SELECT number AS n, toString(number) AS s FROM numbers({ROWS})")
pools, peaks = [], {{}}
for query in {PEAKS!r}:
    pools.append(pa.proxy_memory_pool(pa.system_memory_pool()))
    pa.set_memory_pool(pools[-1])
    cursor.execute(query + " SETTINGS max_memory_usage = 50000000")
    for batch in cursor.fetch_record_batch():
        pass
    peaks[query] = pools[-1].max_memory()
print(json.dumps(peaks), flush=True)
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    peaks = json.loads(done.stdout)
    # The values of a query have 300 to 600 MB.
    assert {query: peak for query, peak in peaks.items() if peak > 75_000_000} == {}


def test_a_condition_on_the_text_of_a_subquery_stays_in_the_scan(connection: Connection) -> None:
    sql = "EXPLAIN SELECT n FROM t WHERE s = upper((SELECT max(s) FROM t))"
    text = "\n".join(str(row[0]) for row in connection.execute(sql).fetchall())
    assert "-wide" not in text


def test_a_long_constant_is_given_some_rows_at_a_time(connection: Connection) -> None:
    sql = (
        "SELECT n, has(range(3000), n), range(3000)[n + 1], [n] = range(3000) FROM t WHERE n < 9000"
    )
    rows = connection.execute(sql).fetchall()
    assert rows == [(n, int(n < 3000), n if n < 3000 else 0, 0) for n in range(9000)]


def test_pieces_grow_by_what_was_seen() -> None:
    rows = pa.record_batch({"x": pa.array(range(100_000))})
    pieces = RowPieces(1_000_000)
    sizes = []
    for piece in pieces.cut(iter((rows, rows.slice(0, 0), rows))):
        sizes.append(piece.num_rows)
        pieces.learn(piece.num_rows, 100 * piece.num_rows if len(sizes) < 6 else 8 * piece.num_rows)
    assert sizes[:6] == [16, 256, 4096, 10_000, 10_000, 10_000]
    assert sum(sizes) == 200_000
    assert max(sizes) == 100_000


def test_a_piece_has_a_row_at_least() -> None:
    pieces = RowPieces(10)
    pieces.learn(1, 1_000_000)
    batch = pa.record_batch({"x": pa.array([1, 2, 3])})
    assert [piece.num_rows for piece in pieces.cut(iter((batch,)))] == [1, 1, 1]


def test_pieces_grow_slowly_once_one_was_much_too_large() -> None:
    rows = pa.record_batch({"x": pa.array(range(1_000))})
    pieces, sizes = RowPieces(1_000), []
    for piece in pieces.cut(iter((rows,))):
        sizes.append(piece.num_rows)
        pieces.learn(piece.num_rows, 10_000 * piece.num_rows if len(sizes) == 1 else piece.num_rows)
    assert sizes[:6] == [16, 1, 2, 4, 8, 16]
