"""Text indexes: which granules they skip, and what ALTER TABLE does with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("engines")

ROWS = 400
GRANULE = 10
TEXT = (
    "concat('row', toString(number), ' word', toString(intDiv(number, 10)),"
    " if(number % 10 = 3, ' Üml', ''), ' end')"
)


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def make(
    connection: Connection, tokenizer: str, columns: str = "s String", value: str = TEXT
) -> None:
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(
        f"CREATE TABLE t (id UInt64, {columns}, INDEX i s TYPE text(tokenizer = {tokenizer}))"
        f" ENGINE = MergeTree ORDER BY id SETTINGS index_granularity = {GRANULE}"
    )
    connection.execute(f"INSERT INTO t SELECT number, {value} FROM numbers({ROWS})")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as opened:
        opened.execute("SYSTEM STOP MERGES")
        yield opened


def granules(connection: Connection, where: str) -> int:
    """Return how many granules a query reads, having checked its answer against one without the
    index."""
    cursor = connection.execute(f"SELECT count(), sum(id) FROM t WHERE {where}")
    found = cursor.fetchall()
    query = f"SELECT count(), sum(id) FROM t WHERE {where} SETTINGS use_skip_indexes = 0"
    assert found == ask(connection, query), where
    return cursor.statistics.granules_read


@pytest.mark.parametrize(
    ("tokenizer", "where", "expected"),
    [
        ("splitByNonAlpha", "hasToken(s, 'word7')", 1),
        ("splitByNonAlpha", "hasToken(s, 'word')", 0),
        ("splitByNonAlpha", "hasAllTokens(s, 'word7 row75')", 1),
        ("splitByNonAlpha", "hasAllTokens(s, 'word7 row85')", 0),
        ("splitByNonAlpha", "hasAnyTokens(s, 'word7 row85')", 2),
        ("splitByNonAlpha", "hasAnyTokens(s, [])", 0),
        ("splitByNonAlpha", "hasPhrase(s, 'row75 word7')", 1),
        ("splitByNonAlpha", "s LIKE '% word7 %'", 1),
        ("splitByNonAlpha", "s LIKE '%word7%'", 1),
        ("splitByNonAlpha", "s LIKE '%ord39%'", 1),
        ("splitByNonAlpha", "s ILIKE '%WORD39%'", 1),
        ("splitByNonAlpha", "s ILIKE '%ROW39 WORD3%'", 40),
        ("splitByNonAlpha", "s LIKE '%' OR hasToken(s, 'word7')", 40),
        ("splitByNonAlpha", "s LIKE '%Üml%' AND hasToken(s, 'word7')", 1),
        ("splitByNonAlpha", "match(s, '[0-9] word7 e')", 1),
        ("splitByNonAlpha", "match(s, ' word(7|8) ')", 40),
        ("splitByNonAlpha", "endsWith(s, ' word39 end')", 1),
        ("splitByNonAlpha", "NOT hasToken(s, 'end')", 40),
        ("splitByString", "hasAllTokens(s, 'word7', 'splitByString')", 1),
        ("splitByString", "hasAllTokens(s, 'word7')", 1),
        ("splitByString", "hasAllTokens(s, 'word7', 'splitByNonAlpha')", 40),
        ("splitByString", "s LIKE '% word7 %'", 40),
        ("ngrams(4)", "s LIKE '%ord39%'", 1),
        ("ngrams(4)", "s LIKE '%d39%'", 40),
        ("ngrams(4)", "match(s, 'word39.*end')", 1),
        ("ngrams(4)", "multiSearchAny(s, ['word39', 'word38'])", 2),
        ("ngrams(4)", "hasAllTokens(s, 'word39', 'ngrams(4)')", 1),
        ("ngrams(4)", "hasAllTokens(s, ['d39 '], 'ngrams(4)')", 1),
        ("sparseGrams", "s LIKE '%word39%'", 1),
        ("asciiCJK", "s LIKE '% word39 %'", 1),
        ("asciiCJK", "hasAllTokens(s, 'word39', 'asciiCJK')", 1),
        ("array", "s LIKE 'row39_%'", 2),
        ("array", "length(s) = 14", 1),
        ("array", "empty(s)", 40),
        ("array", "reverse(s) = 'dne 93drow 993wor'", 1),
    ],
)
def test_granules_are_skipped(
    connection: Connection, tokenizer: str, where: str, expected: int
) -> None:
    make(connection, tokenizer)
    assert granules(connection, where) == expected


@pytest.mark.parametrize(
    ("columns", "value", "where", "expected"),
    [
        ("s Array(String)", "[toString(number), 'x']", "has(s, '155')", 1),
        ("s Array(String)", "[toString(number), 'x']", "hasAny(s, ['155', '20', 'none'])", 2),
        ("s Array(String)", "[toString(number), 'x']", "hasAll(s, ['155', 'x'])", 1),
        ("s Array(String)", "[toString(number), 'x']", "hasAll(s, ['155', '20'])", 0),
        ("s Array(Nullable(String))", "[toString(number), NULL]", "has(s, '155')", 1),
        ("s LowCardinality(String)", "toString(intDiv(number, 20))", "hasToken(s, '3')", 2),
        ("s Nullable(String)", "if(number > 99, NULL, 'a')", "hasAnyTokens(s, 'a')", 10),
        ("s FixedString(5)", "toString(number)", "s LIKE '155%'", 1),
    ],
)
def test_kinds_of_columns(
    connection: Connection, columns: str, value: str, where: str, expected: int
) -> None:
    make(connection, "splitByNonAlpha", columns, value)
    assert granules(connection, where) == expected


def test_explain_names_the_index(connection: Connection) -> None:
    make(connection, "splitByNonAlpha")
    query = "EXPLAIN indexes = 1 SELECT id FROM t WHERE hasToken(s, 'word7')"
    lines = [str(line).strip() for (line,) in ask(connection, query)]
    at = lines.index("Skip")
    assert lines[at + 1 : at + 5] == [
        "Name: i",
        "Description: text GRANULARITY 100000000",
        "Parts: 1/1",
        "Granules: 1/40",
    ]


def test_alter_table(connection: Connection) -> None:
    make(connection, "ngrams(3)")
    assert granules(connection, "s LIKE '%word7 %'") == 1
    connection.execute("ALTER TABLE t CLEAR INDEX i")
    assert granules(connection, "s LIKE '%word7 %'") == 40
    connection.execute("ALTER TABLE t MATERIALIZE INDEX i")
    assert granules(connection, "s LIKE '%word7 %'") == 1
    connection.execute("ALTER TABLE t DROP INDEX i")
    assert granules(connection, "s LIKE '%word7 %'") == 40
    connection.execute("ALTER TABLE t ADD INDEX i s TYPE text(tokenizer = splitByNonAlpha)")
    assert granules(connection, "s LIKE '%word7 %'") == 40, "the file has an index of n-grams"
    connection.execute("ALTER TABLE t MATERIALIZE INDEX i")
    assert granules(connection, "hasToken(s, 'word7')") == 1
    connection.execute("ALTER TABLE t RENAME COLUMN s TO r")
    assert granules(connection, "hasToken(r, 'word7')") == 40
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("ALTER TABLE t MATERIALIZE INDEX i")
    assert granules(connection, "hasToken(r, 'word7')") == 1
    connection.execute("ALTER TABLE t UPDATE r = 'moved' WHERE id = 5")
    assert granules(connection, "hasToken(r, 'moved')") == 1
    connection.execute("DELETE FROM t WHERE id = 5")
    assert granules(connection, "hasToken(r, 'moved')") == 0


def test_merges_and_reopening(tmp_path: Path) -> None:
    for step in range(3):
        with olapdb.connect(str(tmp_path), settings={"inline_bytes_max": 0}) as connection:
            connection.execute("SYSTEM STOP MERGES")
            if not step:
                make(connection, "splitByString([' ', '\\'', 'ü'])")
            connection.execute("INSERT INTO t SELECT id + 400, s FROM t")
            assert (
                granules(
                    connection,
                    "hasAllTokens(s, 'word7', 'splitByString([\\' \\', \\'\\\\\\'\\', \\'ü\\'])')",
                )
                == 2 << step
            )
            (shown,) = ask(connection, "SELECT type_full FROM system.data_skipping_indices")
            assert shown == ("text(tokenizer = splitByString([' ', '\\'', 'ü']))",)
            (create,) = ask(connection, "SHOW CREATE TABLE t")
            assert (
                "TYPE text(tokenizer = splitByString([' ', '\\'', 'ü'])) GRANULARITY 100000000"
                in str(create[0])
            )
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("OPTIMIZE TABLE t FINAL")
        assert granules(connection, "hasAllTokens(s, 'row7 word0', 'splitByString')") == 320
        assert granules(connection, "s = 'row7 word0 end'") <= 8


def test_a_copied_definition(connection: Connection) -> None:
    make(connection, "ngrams(2)")
    ((create,),) = ask(connection, "SHOW CREATE TABLE t")
    connection.execute(str(create).replace("default.t", "default.u"))
    connection.execute("CREATE TABLE v AS t")
    shown = ask(
        connection, "SELECT table, expr, type_full FROM system.data_skipping_indices ORDER BY table"
    )
    assert shown == [(name, "s", "text(tokenizer = ngrams(2))") for name in ("t", "u", "v")]


@pytest.mark.parametrize(
    ("preprocessor", "where", "expected"),
    [
        ("lower(s)", "hasToken(s, 'WORD7')", 1),
        ("lower(s)", "hasAllTokens(s, 'Word7 ROW75')", 1),
        ("lower(s)", "hasAnyTokens(s, ['word7', 'word8'])", 2),
        ("lower(s)", "hasAnyTokens(s, ['Word7'])", 0),
        ("lower(s)", "hasPhrase(s, 'Row75 Word7')", 1),
        ("lower(s)", "hasPhrase(s, 'Word7 Row75')", 1),
        ("lower(s)", "hasToken(s, 'WORD7') AND NOT hasToken(s, 'ROW75')", 1),
        ("lower(s)", "hasAllTokens(lower(s), 'word7')", 1),
        ("lower(s)", "s LIKE '% word7 %'", 1),
        ("lower(s)", "s ILIKE '%WORD7%'", 1),
        ("lower(s)", "s = 'row75 word7 end'", 1),
        ("reverse(s)", "s = 'row75 word7 end'", 1),
        ("reverse(s)", "s LIKE '% word7 %'", 40),
        ("reverse(s)", "hasAllTokens(s, 'word7')", 1),
        ("substring(s, 1, 4)", "hasAllTokens(s, 'row3')", 12),
    ],
)
def test_preprocessors(
    connection: Connection, preprocessor: str, where: str, expected: int
) -> None:
    make(connection, f"splitByNonAlpha, preprocessor = {preprocessor}")
    cursor = connection.execute(f"SELECT count() FROM t WHERE {where}")
    cursor.fetchall()
    assert cursor.statistics.granules_read == expected


def test_a_preprocessor_is_renamed_with_its_column(connection: Connection) -> None:
    make(connection, "splitByNonAlpha, preprocessor = lower(s)")
    connection.execute("ALTER TABLE t RENAME COLUMN s TO r")
    (shown,) = ask(connection, "SELECT expr, type_full FROM system.data_skipping_indices")
    assert shown == ("r", "text(tokenizer = splitByNonAlpha, preprocessor = lower(r))")
    connection.execute("ALTER TABLE t MATERIALIZE INDEX i")
    cursor = connection.execute("SELECT count() FROM t WHERE hasToken(r, 'WORD7')")
    assert cursor.fetchall() == [(10,)]
    assert cursor.statistics.granules_read == 1


def test_an_index_does_not_change_what_views_and_mutations_mean(connection: Connection) -> None:
    make(connection, "ngrams(3)")
    connection.execute("CREATE TABLE seen (id UInt64) ENGINE = MergeTree ORDER BY id")
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO seen AS SELECT id FROM t"
        " WHERE hasAnyTokens(s, 'WORD1') OR hasAllTokens(s, 'ord2')"
    )
    connection.execute("INSERT INTO t VALUES (1000, 'a WORD1'), (1001, 'word1'), (1002, 'word2')")
    assert ask(connection, "SELECT id FROM seen") == [(1000,)]
    connection.execute("ALTER TABLE t DROP INDEX i")
    connection.execute(
        "ALTER TABLE t ADD INDEX i s TYPE text(tokenizer = splitByNonAlpha, preprocessor = lower(s))"
    )
    connection.execute("INSERT INTO t VALUES (1003, 'a WORD1'), (1004, 'word1')")
    connection.execute("SYSTEM BACKFILL VIEW v")
    cursor = connection.execute("SYSTEM RECONCILE VIEW v")
    names = [field[0] for field in cursor.description or ()]
    assert {dict(zip(names, row, strict=True))["verdict"] for row in cursor.fetchall()} == {"equal"}
    assert ask(connection, "SELECT id FROM seen ORDER BY id") == [(1000,), (1003,)]
    assert ask(connection, "SELECT count() FROM t WHERE hasToken(s, 'WORD1')") == [(14,)]
    connection.execute("DELETE FROM t WHERE hasToken(s, 'WORD1')")
    assert ask(connection, "SELECT count() FROM t WHERE hasToken(s, 'WORD1')") == [(12,)]


@pytest.mark.parametrize(
    ("index", "where", "expected"),
    [
        ("mapKeys(m) TYPE text(tokenizer = array)", "mapContains(m, 'k7')", 1),
        ("mapKeys(m) TYPE text(tokenizer = array)", "mapContainsKey(m, 'k7')", 1),
        ("mapKeys(m) TYPE text(tokenizer = array)", "has(mapKeys(m), 'k7')", 1),
        ("mapKeys(m) TYPE text(tokenizer = array)", "m['k7'] = 'v77'", 1),
        ("mapKeys(m) TYPE text(tokenizer = array)", "'v77' = m['k7'] OR m['k8'] = 'v80'", 2),
        ("mapKeys(m) TYPE text(tokenizer = array)", "m['k7'] = ''", 40),
        ("mapKeys(m) TYPE text(tokenizer = array)", "NOT mapContains(m, 'k7')", 40),
        ("mapKeys(m) TYPE text(tokenizer = array)", "NOT (m['k7'] = 'v77')", 40),
        ("mapKeys(m) TYPE text(tokenizer = ngrams(2))", "m['k7'] = 'v77'", 1),
        ("mapKeys(m) TYPE bloom_filter(0.001)", "m['k7'] = 'v77'", 1),
        ("mapValues(m) TYPE text(tokenizer = array)", "m['k7'] = 'v77'", 1),
        ("mapValues(m) TYPE text(tokenizer = array)", "m['k7'] = 'v88'", 1),
        ("mapValues(m) TYPE text(tokenizer = array)", "mapContainsValue(m, 'v77')", 1),
        ("mapValues(m) TYPE text(tokenizer = array)", "m['none'] = ''", 40),
        ("mapValues(m) TYPE text(tokenizer = array)", "m['k7'] != 'v77'", 40),
        ("mapValues(n) TYPE bloom_filter(0.001)", "n['k'] = 123", 1),
        ("mapValues(n) TYPE bloom_filter(0.001)", "n['none'] = 0", 40),
    ],
)
def test_indexes_of_maps(connection: Connection, index: str, where: str, expected: int) -> None:
    connection.execute(
        f"CREATE TABLE t (id UInt64, m Map(String, String), n Map(String, UInt64), INDEX i {index})"
        f" ENGINE = MergeTree ORDER BY id SETTINGS index_granularity = {GRANULE}"
    )
    connection.execute(
        "INSERT INTO t SELECT number, map('x', '', concat('k', toString(intDiv(number, 10))),"
        f" concat('v', toString(number))), map('k', number) FROM numbers({ROWS})"
    )
    assert granules(connection, where) == expected
