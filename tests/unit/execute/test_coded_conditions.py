"""Conditions over texts that the column cache keeps as codes: equal answers, less work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

import olapdb
from olapdb.compute.evaluate import evaluate_array
from olapdb.config import tuning
from olapdb.execute.operators import coded_texts
from olapdb.functions.aggregates.distinct import UniqExact
from olapdb.native.library import without_kernels

pytestmark = pytest.mark.feature("select", "aggregates", "storage")

ROWS, TEXTS = 6_000, 7
CONDITIONS = [
    "t LIKE '%3%'",
    "t = 'text 2' OR n = 5",
    "lower(t) IN ('text 1', 'text 4') AND k % 3 = 1",
    "t > 'text 4' AND length(t) = 6 AND maybe != 'x1'",
    "maybe IS NULL",
    "coalesce(maybe, 'none') IN ('none', 'x2')",
    "maybe LIKE 'x%' OR t LIKE '%5'",
    "NOT (maybe = 'x0')",
    "concat(t, ifNull(maybe, '')) = 'text 2x2'",
    "t = low",
    "low NOT IN ('text 1', 'text 2')",
    "t IN (SELECT t FROM rows WHERE k < 3)",
    "arrayExists(x -> x = t, ['text 3', 'text 9'])",
    "k > 10 AND toUInt8(substring(t, 6)) = 3",
    "t != 'text 6' AND toUInt8(replaceOne(t, 'text ', '')) < 9",
    "rand() >= 0 AND t = 'text 1'",
    "n IN (0, 3) AND throwIf(t = 'text 2') = 0",
]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    """Three parts; `n` is the number in the text."""
    with (
        patch.multiple(tuning, SHARED_DICTIONARY_ROWS_MIN=100, READ_AT_ONCE_ROWS_MAX=100),
        olapdb.connect(tmp_path, settings={"inline_bytes_max": 0}) as opened,
    ):
        opened.execute(
            "CREATE TABLE rows (k UInt32, n UInt8, t String, maybe Nullable(String), "
            "low LowCardinality(String)) ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 512"
        )
        for part in range(3):
            opened.execute(
                f"INSERT INTO rows SELECT number AS k, number % {TEXTS} AS n, concat('text ', "
                f"toString(n)), if(k % 4 = 0, NULL, concat('x', toString(k % 5))), concat('text ', "
                f"toString(k % 3)) FROM numbers({part * ROWS}, {ROWS})"
            )
        yield opened


def answer(connection: olapdb.Connection, condition: str) -> list[tuple[object, ...]]:
    sql = f"SELECT count(), sum(k), min(t), max(maybe), any(low) FROM rows WHERE {condition}"
    return connection.execute(sql).fetchall()


def forms(connection: olapdb.Connection) -> dict[str, int]:
    """Return the bytes of each column that the cache has as a dictionary."""
    sql = "SELECT column, sum(bytes) FROM system.uncompressed_cache WHERE is_dictionary GROUP BY column"
    return {str(name): int(str(size)) for name, size in connection.execute(sql).fetchall()}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_codes_change_no_answer(connection: olapdb.Connection, condition: str) -> None:
    with patch.multiple(tuning, SHARED_DICTIONARY_ROWS_MIN=1 << 62):
        expected = answer(connection, condition)
    assert forms(connection) == {}
    for _ in range(3):
        assert answer(connection, condition) == expected


def test_a_condition_is_computed_once_for_each_text(connection: olapdb.Connection) -> None:
    sql = "SELECT count() FROM rows WHERE t LIKE '%3%' AND n > 0"
    expected = connection.execute(sql).fetchall()
    computed: list[int] = []
    evaluate = evaluate_array

    def counted(expression, batch, *rest):  # type: ignore[no-untyped-def]
        computed.append(batch.num_rows)
        return evaluate(expression, batch, *rest)

    connection.execute("SET max_threads = 1")
    with patch.object(coded_texts, "evaluate_array", counted):
        assert connection.execute(sql).fetchall() == expected
    assert computed == [TEXTS], "the three parts are one task"


def test_all_texts_are_computed_once_most_rows_have_asked(tmp_path: Path) -> None:
    """A small first task needs few of the texts; those after it need most, and compute the rest at once."""
    texts = 2_000
    computed: list[int] = []
    evaluate = evaluate_array

    def counted(expression, batch, *rest):  # type: ignore[no-untyped-def]
        computed.append(batch.num_rows)
        return evaluate(expression, batch, *rest)

    with (
        patch.multiple(
            tuning, TASK_ROWS=512, LARGE_TASK_ROWS=4_096, SHARED_DICTIONARY_ROWS_MIN=100
        ),
        olapdb.connect(tmp_path) as opened,
    ):
        opened.execute("SET max_threads = 1")
        opened.execute(
            "CREATE TABLE rows (k UInt32, t String) ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 512"
        )
        opened.execute(
            f"INSERT INTO rows SELECT number, toString(number * 7 % {texts}) FROM numbers({10 * texts})"
        )
        sql = "SELECT count(), sum(k) FROM rows WHERE t LIKE '%7%'"
        for _ in range(2):
            expected = opened.execute(sql).fetchall()
        unknown = sql.replace(
            "sum(k)", "sum(k) AS s"
        )  # no earlier run of its plan tells what rows cost
        with patch.object(coded_texts, "evaluate_array", counted):
            assert opened.execute(unknown).fetchall() == expected
    assert computed[0] < texts / _SHARE_OF_FIRST_TASK
    assert len(computed) == len({"of the first task", "all texts"})
    assert computed[1] == texts


_SHARE_OF_FIRST_TASK = 2


def test_no_text_is_searched_where_a_cheaper_condition_leaves_no_row(
    connection: olapdb.Connection,
) -> None:
    sql = "SELECT count() FROM rows WHERE t LIKE '%te%' AND maybe = '{}'"
    for _ in range(2):
        connection.execute("SELECT count() FROM rows WHERE t LIKE '%3%' OR maybe LIKE '%3%'")
    calls: list[str] = []
    evaluate = evaluate_array

    def counted(expression, batch, *rest):  # type: ignore[no-untyped-def]
        calls.append(expression.name)
        return evaluate(expression, batch, *rest)

    with (
        patch.multiple(tuning, RANGE_ROWS_MIN=1),
        patch.object(coded_texts, "evaluate_array", counted),
    ):
        assert connection.execute(sql.format("x22")).fetchall() == [(0,)]
        assert set(calls) == {"equals"}
        connection.execute(sql.format("x1"))
        assert set(calls) == {"equals", "like"}


def test_codes_and_dictionaries_count_in_the_cache(connection: olapdb.Connection) -> None:
    sql = "SELECT count() FROM rows WHERE t LIKE '%3%' AND n < 9"
    for _ in range(2):
        connection.execute(sql)
    dictionaries = 3 * (TEXTS * len("text 0") + 4 * TEXTS)
    assert forms(connection) == {"t": 3 * 4 * ROWS + dictionaries}
    connection.execute("SYSTEM DROP UNCOMPRESSED CACHE")
    assert forms(connection) == {}
    assert connection.execute(sql).fetchall() == [(3 * ROWS // TEXTS,)]


def test_texts_that_do_not_repeat_get_no_codes(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE unique_texts (t String) ENGINE = MergeTree ORDER BY t")
    connection.execute("INSERT INTO unique_texts SELECT toString(number) FROM numbers(1000)")
    for _ in range(3):
        sql = "SELECT count() FROM unique_texts WHERE t LIKE '%7%'"
        assert connection.execute(sql).fetchall() == [(271,)]
    (size,) = forms(connection).values()
    assert size == 0, "only the note that there are none"


def test_keys_are_grouped_by_codes(connection: olapdb.Connection) -> None:
    sql = "SELECT t, maybe, count() FROM rows WHERE low LIKE '%1%' GROUP BY t, maybe ORDER BY t, maybe"
    expected = connection.execute(sql).fetchall()
    assert len(expected) == TEXTS * 6
    for _ in range(2):
        assert connection.execute(sql).fetchall() == expected


AGGREGATIONS = [
    "SELECT n, uniqExact(t), uniq(maybe), min(maybe), max(t), groupUniqArray(low) FROM rows GROUP BY n",
    "SELECT upper(t) AS u, substring(t, 1, 4) AS s, count(), min(t) FROM rows GROUP BY u, s",
    "SELECT substring(maybe, 1, 1) AS m, sum(length(maybe)), any(upper(maybe)) FROM rows GROUP BY m",
    "SELECT count(DISTINCT t), count(DISTINCT maybe, low), uniqIf(t, n > 2), min(lower(t)) FROM rows",
    "SELECT low, count(DISTINCT t), avg(length(t)), sum(k) FROM rows WHERE t != 'text 3' GROUP BY low",
    "SELECT if(n < 3, 'few', t) AS e, uniqExact(length(t)), max(maybe) FROM rows GROUP BY e",
    "SELECT t, finalizeAggregation(uniqExactState(maybe)) FROM rows WHERE n IN (1, 2) GROUP BY t",
    "SELECT sum(toUInt8(substring(t, 6))), min(t) FROM rows WHERE n != 4 AND t != 'text 5'",
    "SELECT n, uniqExact(t) FROM rows GROUP BY n WITH TOTALS",
    "SELECT uniqExact(t), min(maybe), max(upper(low)) FROM rows WHERE n > 100",
]


@pytest.mark.parametrize("sql", AGGREGATIONS)
@pytest.mark.parametrize("has_kernels", [True, False])
def test_codes_change_no_aggregate(
    connection: olapdb.Connection, sql: str, has_kernels: bool
) -> None:
    sql = f"SELECT * FROM ({sql}) ORDER BY ALL" if "TOTALS" not in sql else sql
    with nullcontext() if has_kernels else without_kernels():
        with patch.multiple(tuning, SHARED_DICTIONARY_ROWS_MIN=1 << 62):
            expected = sorted(map(str, connection.execute(sql).fetchall()))
        for _ in range(3):
            assert sorted(map(str, connection.execute(sql).fetchall())) == expected


def test_distinct_texts_are_no_groups_of_the_query(connection: olapdb.Connection) -> None:
    sql = "SELECT count(DISTINCT t) FROM rows SETTINGS max_rows_to_group_by = 3"
    assert connection.execute(sql).fetchall() == [(TEXTS,)]


def test_an_aggregate_takes_each_text_of_a_group_once(connection: olapdb.Connection) -> None:
    sql = (
        "SELECT n % 2 AS odd, groupUniqArray(t), min(upper(t)) FROM rows GROUP BY odd ORDER BY odd"
    )
    expected = connection.execute(sql).fetchall()
    given: list[int] = []
    state = UniqExact.state

    def counted(self, arguments, groups):  # type: ignore[no-untyped-def]
        given.append(len(arguments[0]))
        return state(self, arguments, groups)

    with patch.object(UniqExact, "state", counted):
        assert connection.execute(sql).fetchall() == expected
    assert given == [TEXTS]
