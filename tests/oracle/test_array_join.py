"""ARRAY JOIN and arrayJoin() beside ClickHouse: names, types, rows and errors agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.errors import Error
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

SETUP = (
    "CREATE TABLE aj (id UInt32, s String, arr Array(Int32), b Array(String), m Map(String, UInt8),"
    " nul Array(Nullable(Int8)), deep Array(Array(UInt8)), day Date)"
    " ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY id",
    "INSERT INTO aj VALUES (1, 'x', [1, 2, 3], ['a', 'b', 'c'], {'k': 1, 'l': 2}, [1, NULL, 3],"
    " [[1], [2, 3]], '2024-01-01'),"
    " (2, 'y', [], [], {}, [], [], '2024-01-02'),"
    " (3, 'z', [7], ['q'], {'z': 9}, [NULL], [[]], '2024-02-01')",
    "INSERT INTO aj VALUES (4, 'x', [1, 1], ['a', 'z'], {'k': 3}, [5], [[9, 9], []], '2024-02-02')",
    "CREATE TABLE ajn (id UInt8, `n.a` Array(UInt8), `n.b` Array(String)) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO ajn VALUES (1, [1, 2], ['x', 'y']), (2, [], [])",
    "CREATE TABLE ajr (k UInt8, v UInt8, tags Array(String)) ENGINE = ReplacingMergeTree(v) ORDER BY k",
    "INSERT INTO ajr VALUES (1, 1, ['old', 'older']), (2, 1, ['two'])",
    "INSERT INTO ajr VALUES (1, 2, ['new'])",
)

QUERIES = (
    # the clause
    "SELECT * FROM aj ARRAY JOIN arr ORDER BY id, arr",
    "SELECT * FROM aj ARRAY JOIN arr AS a ORDER BY id, a",
    "SELECT aj.* FROM aj ARRAY JOIN arr AS a ORDER BY id, a",
    "SELECT id, a, arr FROM aj ARRAY JOIN arr AS a ORDER BY id, a",
    "SELECT id, arr, num FROM aj ARRAY JOIN arr, arrayEnumerate(arr) AS num ORDER BY id, num",
    "SELECT id, x FROM aj ARRAY JOIN [1, 2] AS x ORDER BY id, x",
    "SELECT id FROM aj ARRAY JOIN [1, 2] ORDER BY id",
    "SELECT id, a, bb FROM aj LEFT ARRAY JOIN arr AS a, b AS bb ORDER BY id, bb",
    "SELECT id, arr, b FROM aj ARRAY JOIN arr, b ORDER BY id, b",
    "SELECT id, m FROM aj ARRAY JOIN m ORDER BY id, m",
    "SELECT id, mm, mm.1, mm.keys FROM aj LEFT ARRAY JOIN m AS mm ORDER BY id, mm",
    "SELECT id, a FROM aj LEFT ARRAY JOIN nul AS a ORDER BY id, a",
    "SELECT id, a FROM aj LEFT ARRAY JOIN deep AS a ORDER BY id, a",
    "SELECT id, a, c FROM aj ARRAY JOIN deep AS a ARRAY JOIN a AS c ORDER BY id, a, c",
    "SELECT id, a, c FROM aj ARRAY JOIN arr AS a ARRAY JOIN b AS c ORDER BY id, a, c",
    "SELECT id, a FROM aj ARRAY JOIN arrayConcat(arr, [0]) AS a ORDER BY id, a",
    "SELECT x FROM (SELECT map() AS e, 1 AS one) ARRAY JOIN e AS x",
    "SELECT arr FROM aj ARRAY JOIN aj.arr ORDER BY 1",
    "SELECT id, a FROM aj AS tt ARRAY JOIN tt.arr AS a ORDER BY id, a",
    "SELECT [1, 2] AS q, id FROM aj ARRAY JOIN q ORDER BY id",
    "WITH [1, 2] AS q SELECT id, q, z FROM aj ARRAY JOIN q AS z ORDER BY id, z",
    "WITH arraySort(arr) AS q SELECT id, z FROM aj ARRAY JOIN q AS z ORDER BY id, z",
    "SELECT id, arr FROM aj ARRAY JOIN arr WHERE arr > 1 ORDER BY id, arr",
    "SELECT id, arr FROM aj ARRAY JOIN arr WHERE id = 1 AND arr > 1 ORDER BY arr",
    "SELECT id, a FROM aj LEFT ARRAY JOIN arr AS a WHERE day < '2024-02-01' ORDER BY id, a",
    "SELECT id, arr FROM aj ARRAY JOIN arr PREWHERE id = 1 ORDER BY arr",
    "SELECT a FROM aj ARRAY JOIN arr AS a ORDER BY a DESC LIMIT 2",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a ORDER BY id, a LIMIT 1 BY id",
    "SELECT count() FROM aj ARRAY JOIN arr",
    "SELECT count() FROM aj LEFT ARRAY JOIN arr",
    "SELECT count(), sum(id) FROM aj ARRAY JOIN arr WHERE 0",
    "SELECT a, count(), sum(id) FROM aj ARRAY JOIN arr AS a GROUP BY a ORDER BY a",
    "SELECT toYYYYMM(day) AS month, tag, count() AS n FROM aj ARRAY JOIN b AS tag GROUP BY month, tag"
    " HAVING n > 0 ORDER BY month, tag",
    "SELECT aj.id, u.id FROM aj ARRAY JOIN arr AS a INNER JOIN aj AS u ON a = u.id ORDER BY aj.id, u.id",
    "SELECT sum(x) FROM (SELECT x FROM aj ARRAY JOIN arr AS x)",
    "SELECT x FROM (SELECT range(number) AS r FROM numbers(4)) ARRAY JOIN r AS x ORDER BY x",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a WHERE id IN (SELECT arrayJoin([1, 3])) ORDER BY id, a",
    "SELECT id, arr AS x FROM aj ARRAY JOIN arr AS x ORDER BY id",
    "SELECT * FROM (SELECT id, a FROM aj ARRAY JOIN arr AS a UNION ALL SELECT 0, 0) ORDER BY id, a",
    "SELECT k, tag FROM ajr FINAL ARRAY JOIN tags AS tag ORDER BY k, tag",
    "SELECT k, tag FROM ajr FINAL ARRAY JOIN tags AS tag WHERE tag != 'two' ORDER BY k, tag",
    "SELECT u.id, a FROM aj AS l INNER JOIN aj AS u ON l.id = u.id ARRAY JOIN u.arr AS a ORDER BY u.id, a",
    "SELECT l.id, a FROM aj AS l LEFT JOIN ajr AS r ON l.id = r.k LEFT ARRAY JOIN r.tags AS a"
    " ORDER BY l.id, a",
    "SELECT q.id, a FROM (SELECT id, arr FROM aj) AS q ARRAY JOIN q.arr AS a ORDER BY q.id, a",
    "SELECT s, count(DISTINCT a), sumIf(a, id > 1) FROM aj ARRAY JOIN arr AS a PREWHERE id != 4"
    " GROUP BY s ORDER BY s",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a WHERE a IN (SELECT id FROM aj) ORDER BY id, a",
    "SELECT id, a, a + 1 AS next FROM aj ARRAY JOIN arr AS a WHERE next > 2 ORDER BY id, next",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a WHERE has(arr, 7) OR a = 1 ORDER BY id, a",
    "SELECT id, s FROM aj ARRAY JOIN b AS s ORDER BY id, s",
    "SELECT max(length(tag)) FROM aj ARRAY JOIN b AS tag WHERE tag IN ('a', 'zz')",
    "WITH t AS (SELECT id, a FROM aj ARRAY JOIN arr AS a) SELECT sum(a) FROM t WHERE id < 4",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a ORDER BY a DESC, id LIMIT 3 OFFSET 1",
    "SELECT DISTINCT a FROM aj ARRAY JOIN arr AS a ORDER BY a",
    "SELECT id, * EXCEPT (s, b, m, nul, deep, day) FROM aj ARRAY JOIN arr ORDER BY id, arr",
    "SELECT id, COLUMNS('ar') FROM aj ARRAY JOIN arr ORDER BY id, arr",
    # nested columns
    "SELECT * FROM ajn ARRAY JOIN n ORDER BY id, n.a",
    "SELECT id, n.a, n.b FROM ajn LEFT ARRAY JOIN n ORDER BY id, n.a",
    "SELECT id, k.a, n.b FROM ajn ARRAY JOIN n AS k ORDER BY id, k.a",
    "SELECT id, n.a FROM ajn ARRAY JOIN n.a ORDER BY id, n.a",
    "SELECT id, n.a, nb FROM ajn ARRAY JOIN n.a, n.b AS nb ORDER BY id, n.a",
    # the function
    "SELECT arrayJoin([1, 2]) AS a, arrayJoin([3, 4]) AS b",
    "SELECT id, arrayJoin(arr) FROM aj ORDER BY id, arrayJoin(arr)",
    "SELECT id, arrayJoin(arr) AS e FROM aj WHERE e > 1 ORDER BY id, e",
    "SELECT id FROM aj WHERE arrayJoin(arr) = 1 ORDER BY id",
    "SELECT id FROM aj WHERE arrayJoin(arr) IN (2, 7) ORDER BY id",
    "SELECT arrayJoin(arraySort(groupArray(id))) AS g FROM aj",
    "SELECT s, arrayJoin(arraySort(groupArray(id))) AS g FROM aj GROUP BY s ORDER BY s, g",
    "SELECT arrayJoin(arr) AS e, count() FROM aj GROUP BY e ORDER BY e",
    "SELECT arrayJoin(arr) AS e, count() FROM aj WHERE e > 0 GROUP BY e HAVING e < 7 ORDER BY e DESC",
    "SELECT arr, arrayJoin(arr) AS e FROM aj GROUP BY arr ORDER BY arr, e",
    "SELECT sum(arrayJoin(arr)), count() FROM aj",
    "SELECT count(), arrayJoin([1, 2]) AS x FROM aj ORDER BY x",
    "SELECT arrayJoin(arrayJoin([[1, 2], [3]]))",
    "SELECT arrayJoin(m) AS x FROM aj ORDER BY x",
    "SELECT DISTINCT arrayJoin([1, 1, 2])",
    "SELECT id, arrayJoin(arr) AS a, arrayJoin(arr) + 1 FROM aj ORDER BY id, a",
    "SELECT id, arrayJoin(arr) AS a, arrayJoin(b) AS c FROM aj ORDER BY id, a, c",
    "SELECT id, arrayJoin(arr) AS arr FROM aj ORDER BY id, arr",
    "SELECT number, arrayJoin(range(number)) AS r FROM numbers(4) ORDER BY number, r LIMIT 1 BY number",
    "SELECT arrayJoin([1, 2]) AS x FROM aj HAVING x = 1",
    "SELECT if(arrayJoin([0, 1]), 'yes', 'no') AS x FROM aj WHERE id = 1 ORDER BY x",
    "SELECT id, (SELECT sum(x) FROM (SELECT arrayJoin([1, 2, 3]) AS x)) AS total FROM aj ORDER BY id",
    "SELECT arrayJoin(range(3)) AS x ORDER BY x DESC",
    "SELECT s, sum(x) FROM (SELECT s, arrayJoin(arr) AS x FROM aj) GROUP BY s ORDER BY s",
    "SELECT arrayJoin(arr) AS x, sum(id) AS t FROM aj GROUP BY x ORDER BY t, x LIMIT 2",
    "SELECT id, arrayJoin(arr) AS x FROM aj ORDER BY x DESC, id LIMIT 2",
    "SELECT countIf(arrayJoin(arr) > 1), max(arrayJoin(arr)) FROM aj",
    "SELECT u.id, arrayJoin(u.arr) AS x FROM aj AS l INNER JOIN aj AS u ON l.id = u.id ORDER BY u.id, x",
    "SELECT a, arrayJoin([10, 20]) AS x FROM aj ARRAY JOIN arr AS a ORDER BY a, x",
)

ERRORS = (
    "SELECT id, a, x FROM aj ARRAY JOIN arr AS a, [1, 2] AS x",
    "SELECT id, a, x FROM aj LEFT ARRAY JOIN arr AS a, [1, 2] AS x",
    "SELECT id FROM aj ARRAY JOIN s",
    "SELECT arrayJoin(5)",
    "SELECT arrayJoin([1], [2])",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a PREWHERE a = 1",
    "SELECT id, arr FROM aj ARRAY JOIN arr PREWHERE length(arr) = 1",
    "SELECT id, a FROM aj ARRAY JOIN arr AS a, a AS c",
    "SELECT id, q FROM aj ARRAY JOIN q AS z",
    "SELECT id FROM aj ARRAY JOIN sum(arr) AS z",
    "SELECT id, a FROM aj ARRAY JOIN nothing AS a",
)


@pytest.fixture(scope="module")
def engines(oracle: Oracle) -> Iterator[tuple[olapdb.Connection, Oracle]]:
    connection = olapdb.connect()
    for statement in SETUP:
        connection.execute(statement)
        oracle.execute(statement)
    yield connection, oracle
    connection.close()
    for name in ("aj", "ajn", "ajr"):
        oracle.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize("optimizer", [1, 0])
@pytest.mark.parametrize("query", QUERIES)
def test_same_answer(query: str, optimizer: int, engines: tuple[olapdb.Connection, Oracle]) -> None:
    connection, oracle = engines
    expected = oracle.query(query)
    result = connection.session.execute(f"{query} SETTINGS optimizer = {optimizer}")
    table = result.read_all()
    assert result.names == expected.names
    types = tuple(t.replace("`values`", "values") for t in expected.types)  # it quotes keywords
    assert tuple(str(t) for t in result.types) == types
    columns = [
        [
            text if valid else None
            for text, valid in zip(display(c, t), c.is_valid().to_pylist(), strict=True)
        ]
        for c, t in zip((c.combine_chunks() for c in table.columns), result.types, strict=True)
    ]
    assert list(zip(*columns, strict=True)) == expected.rows


@pytest.mark.parametrize("query", ERRORS)
def test_same_error(query: str, engines: tuple[olapdb.Connection, Oracle]) -> None:
    connection, oracle = engines
    with pytest.raises(OracleError) as theirs:
        oracle.query(query)
    with pytest.raises(Error) as ours:
        connection.session.execute(query).read_all()
    assert (ours.value.code, ours.value.name) == (theirs.value.code, theirs.value.name)
