"""Operators past their memory answer from disk what they answer from memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from unittest.mock import patch

import pytest

import olapdb
from olapdb.compute.spill.partitions import PARTITIONS
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, MemoryLimitExceeded, TooManyRowsOrBytes
from olapdb.execute.spill import joiner, sorter
from olapdb.execute.spill.sorter import Sorter

pytestmark = pytest.mark.feature("settings")

ROWS = 3_000
OPERATIONS = ("group_by", "sort", "join", "distinct")
SPILLING = {f"max_bytes_before_external_{operation}": 1_000 for operation in OPERATIONS}
IN_MEMORY = {f"max_bytes_ratio_before_external_{operation}": 0 for operation in OPERATIONS}
BATCHES = {"max_block_size": 500}

KEYS: Mapping[str, str] = {
    "UInt8": "toUInt8(number % 251)",
    "Int64": "toInt64(number % 700) - 300",
    "Float64": "arrayElement([0., -0., 1.5, nan, inf, -inf], 1 + number % 6)",
    "Decimal": "toDecimal64(number % 700, 3)",
    "Decimal256": "toDecimal256(number % 700, 3)",
    "Bool": "number % 3 = 0",
    "String": "toString(number % 700)",
    "FixedString": "toFixedString(toString(number % 700), 5)",
    "LowCardinality": "toLowCardinality(toString(number % 70))",
    "Date": "toDate('2024-01-01') + number % 400",
    "DateTime64": "toDateTime64('2024-01-01 00:00:00', 3) + number % 700",
    "UUID": "toUUID(concat('00000000-0000-0000-0000-', leftPad(toString(number % 700), 12, '0')))",
    "Nullable(String)": "if(number % 5 = 0, NULL, toString(number % 70))",
    "Nullable(Float64)": "if(number % 5 = 0, NULL, number % 70 / (number % 3))",
    "Array(String)": "arrayMap(x -> toString(x), range(number % 7))",
    "Array(Nullable)": "[NULL, number % 90, if(number % 2, NULL, 3)]",
    "Tuple": "(number % 70, toString(number % 3))",
    "Map": "map('a', number % 50, 'b', 1)",
    "Array(Array)": "[range(number % 5), [number % 3]]",
    "Enum": "CAST(number % 3 + 1, 'Enum8(\\'z\\' = 1, \\'b\\' = 2, \\'c\\' = 3)')",
    "IPv4": "toIPv4(concat('10.0.', toString(number % 7), '.', toString(number % 100)))",
    "IPv6": "toIPv6(concat('::', toString(number % 700)))",
    "Int128": "toInt128(number % 700) * 1000000000000000000 * 1000 - 5",
    "Date32": "toDate32('1950-01-01') + number % 400",
    "Time": "CAST(number % 700, 'Time')",
    "BFloat16": "toBFloat16(number % 70)",
    "Float32": "toFloat32(number % 70 / 3)",
    "LowCardinality(Nullable)": "toLowCardinality(if(number % 5 = 0, NULL, toString(number % 70)))",
    "Nullable(Decimal)": "if(number % 5 = 0, NULL, toDecimal64(number % 70, 2))",
}

VALUES: Mapping[str, str] = {
    "Variant": "CAST(if(n % 3 = 0, NULL, toUInt64(n % 9)), 'Variant(UInt64, String)')",
    "Dynamic": "CAST(if(n % 2, toString(n), NULL), 'Dynamic')",
    "JSON": "CAST(concat('{\"a\": ', toString(n % 9), if(n % 2, ', \"b\": [1, \"x\"]}', '}')), 'JSON')",
    "a state": "initializeAggregation('uniqState', n % 7)",
    "Map": "map('a', [n % 3], 'b', range(n % 4))",
    "Tuple with names": "CAST((n, toString(n)), 'Tuple(a UInt64, b String)')",
    "Point": "CAST((n, 1), 'Point')",
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Connect to a warehouse with a table that has a column of each type."""
    with olapdb.connect() as connection:
        columns = ", ".join(f"{sql} AS k{at}" for at, sql in enumerate(KEYS.values()))
        connection.execute(
            "CREATE TABLE t ENGINE = MergeTree ORDER BY n AS"
            f" SELECT number AS n, intHash32(number) AS far, {columns} FROM numbers({ROWS})"
        )
        yield connection


def key(name: str) -> str:
    return f"k{list(KEYS).index(name)}"


def run(connection: Connection, sql: str, settings: Mapping[str, object]) -> tuple[list[str], int]:
    """Return the rows as text, and the bytes that were spilled."""
    given = ", ".join(f"{name} = {value}" for name, value in {**BATCHES, **settings}.items())
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} SETTINGS {given}")
        rows = [repr(row) for row in cursor.fetchall()]
        return rows, cursor.statistics.spilled_bytes


def check(connection: Connection, sql: str, *, ordered: bool = False) -> None:
    """Assert that the query answers the same from disk, and in the same order if it promises one."""
    expected, nothing = run(connection, sql, IN_MEMORY)
    rows, spilled_bytes = run(connection, sql, SPILLING)
    assert nothing == 0
    assert spilled_bytes > 0
    assert rows == expected if ordered else sorted(rows) == sorted(expected)


@pytest.mark.parametrize("name", KEYS)
def test_order_by_each_type(connection: Connection, name: str) -> None:
    check(connection, f"SELECT n, {key(name)} AS k FROM t ORDER BY k", ordered=True)
    check(connection, f"SELECT n, {key(name)} AS k FROM t ORDER BY k DESC", ordered=True)


@pytest.mark.parametrize("name", KEYS)
def test_group_by_each_type(connection: Connection, name: str) -> None:
    check(
        connection,
        f"SELECT {key(name)} AS k, count(), sum(n), groupArray(n), any(far) FROM t GROUP BY k",
    )


@pytest.mark.parametrize("name", VALUES)
def test_values_of_types_that_are_no_keys(connection: Connection, name: str) -> None:
    """Compare rows that carry such values through sorts, joins, windows, DISTINCT and LIMIT BY."""
    rows = f"(SELECT n, far, {VALUES[name]} AS v FROM t)"
    shown = "finalizeAggregation(v)" if name == "a state" else "toString(v)"
    for sql in (
        f"SELECT n, {shown} FROM (SELECT * FROM {rows} ORDER BY far)",
        f"SELECT l.n, {shown} FROM t AS l LEFT JOIN {rows} AS r ON l.n = r.n * 2",
        f"SELECT n, {shown}, c FROM (SELECT n, v, count() OVER (PARTITION BY n % 700) AS c FROM {rows})",
        f"SELECT n, {shown} FROM (SELECT DISTINCT ON (n) * FROM {rows})",
        f"SELECT n, {shown} FROM (SELECT * FROM {rows} LIMIT 1 BY n % 900)",
    ):
        check(connection, sql)


AGGREGATES = (
    "avg(n)",
    "min(far), max(far), argMin(n, far)",
    "uniqExact(far), uniq(far)",
    "quantile(0.9)(n), median(far)",
    "topK(3)(n % 5)",
    "arraySort(groupUniqArray(n % 7))",
    "sumMap(map(n % 3, n))",
    "anyLast(far), first_value(n)",
    "stddevPop(n), corr(n, far)",
    "countState(), sumState(n), uniqExactState(far)",
)


@pytest.mark.parametrize("aggregates", AGGREGATES)
def test_states_of_aggregates(connection: Connection, aggregates: str) -> None:
    check(connection, f"SELECT n % 900 AS k, {aggregates} FROM t GROUP BY k")


@pytest.mark.parametrize("keys", ["far", "far % 700", "n % 400, far % 3", "toString(far)"])
def test_groups_whose_batches_have_few_or_many_repeats(connection: Connection, keys: str) -> None:
    rows = " UNION ALL ".join(["SELECT * FROM t"] * 3)
    check(
        connection,
        f"SELECT {keys}, count(), sum(n), max(k6), groupArray(n) FROM ({rows}) GROUP BY {keys}",
    )


@pytest.mark.parametrize(
    "sets",
    [
        "n % 700, n % 3 WITH ROLLUP",
        "n % 700, n % 3 WITH CUBE",
        "GROUPING SETS ((n % 700, n % 3), (n % 3), ())",
    ],
)
def test_grouping_sets(connection: Connection, sets: str) -> None:
    check(connection, f"SELECT n % 700, n % 3, count(), sum(n) FROM t GROUP BY {sets}")


@pytest.mark.parametrize(
    "group",
    [
        "n % 700, n % 3 WITH TOTALS",
        "n % 700, n % 3 WITH TOTALS HAVING count() > 1",
        "n % 700, n % 3 WITH ROLLUP WITH TOTALS",
    ],
)
def test_totals(connection: Connection, group: str) -> None:
    sql = f"SELECT n % 700, n % 3, count(), sum(n) FROM t GROUP BY {group}"
    check(connection, sql)
    totals = []
    for settings in (IN_MEMORY, SPILLING):
        given = ", ".join(f"{name} = {value}" for name, value in {**BATCHES, **settings}.items())
        with connection.cursor() as cursor:
            cursor.execute(f"{sql} SETTINGS {given}")
            totals.append(cursor.totals)
    assert totals[0] == totals[1]
    assert totals[0] is not None


ORDERS: Sequence[str] = (
    "SELECT n FROM t ORDER BY far",
    "SELECT n FROM t ORDER BY n",
    "SELECT n FROM t ORDER BY n DESC",
    "SELECT n FROM t ORDER BY n % 3, far DESC",
    "SELECT n FROM t ORDER BY if(n % 3 = 0, NULL, n % 5) NULLS FIRST, n % 7",
    # Of a stored table alone, LIMIT sorts keys and addresses, which take little memory.
    "SELECT n, far FROM (SELECT n, far FROM t UNION ALL SELECT 0, 0 WHERE 0) ORDER BY far LIMIT 2700",
    "SELECT n, far FROM (SELECT n, far FROM t UNION ALL SELECT 0, 0 WHERE 0) ORDER BY far"
    " LIMIT 2000 OFFSET 500",
    "SELECT n FROM t ORDER BY n % 10 LIMIT 1500 WITH TIES",
    "SELECT n, toString(far) AS s FROM t ORDER BY substring(s, 2), s",
)


@pytest.mark.parametrize("step", [2, 7, sorter.SEARCH_STEP])
@pytest.mark.parametrize("sql", ORDERS)
def test_order_by(connection: Connection, sql: str, step: int) -> None:
    with patch.object(sorter, "SEARCH_STEP", step):
        check(connection, sql, ordered=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sql", ORDERS)
def test_merged_rows_are_cut_into_pieces(connection: Connection, sql: str, threads: int) -> None:
    """Compare a sort whose merge cuts the rows of each step into the smallest pieces."""
    expected, _ = run(connection, sql, IN_MEMORY)
    cut = {"max_bytes_before_external_sort": 12_000, "max_block_size": 100, "max_threads": threads}
    with patch.object(sorter, "CUT_ROWS_PER_RUN", 1):
        rows, spilled_bytes = run(connection, sql, cut)
    assert rows == expected
    assert spilled_bytes > 0


def test_a_merge_of_many_runs_is_not_cut(connection: Connection) -> None:
    """To find where to cut takes time with each run: two hundred of them took 40 seconds of a small sort."""
    many_runs = {"max_bytes_before_external_sort": 1, "max_block_size": 100, "max_threads": 2}
    with patch.object(Sorter, "_rows_up_to", autospec=True, side_effect=Sorter._rows_up_to) as cuts:
        rows, _ = run(connection, "SELECT n FROM t ORDER BY far", many_runs)
    assert len(rows) == ROWS
    assert cuts.call_count < 10


WINDOWS: Sequence[str] = (
    "SELECT n, sum(n) OVER (PARTITION BY n % 700 ORDER BY far) FROM t",
    "SELECT n, row_number() OVER (PARTITION BY n % 3 ORDER BY far DESC) FROM t",
    "SELECT n, lagInFrame(n) OVER (ORDER BY far) FROM t",
    "SELECT n, rank() OVER (PARTITION BY k ORDER BY n % 5), count() OVER (PARTITION BY far % 9)"
    f" FROM (SELECT n, far, {KEYS['Nullable(String)'].replace('number', 'n')} AS k FROM t)",
)


@pytest.mark.parametrize("sql", WINDOWS)
def test_windows(connection: Connection, sql: str) -> None:
    check(connection, sql, ordered=True)


def test_random_sort_keys_are_drawn_once(connection: Connection) -> None:
    sql = "SELECT max(c), count() FROM (SELECT n, count() AS c FROM (SELECT n FROM t ORDER BY rand()) GROUP BY n)"
    rows, spilled_bytes = run(connection, sql, SPILLING)
    assert rows == [f"(1, {ROWS})"]
    assert spilled_bytes > 0


@pytest.mark.parametrize("codec", ["LZ4", "ZSTD", "NONE"])
def test_codecs(connection: Connection, codec: str) -> None:
    sql = "SELECT n FROM t ORDER BY far"
    rows, _ = run(connection, sql, {**SPILLING, "temporary_files_codec": f"'{codec}'"})
    assert rows == run(connection, sql, IN_MEMORY)[0]


def test_the_size_of_temporary_data_is_limited(connection: Connection) -> None:
    limited = {**SPILLING, "max_temporary_data_on_disk_size_for_query": 20_000}
    with pytest.raises(TooManyRowsOrBytes, match="max_temporary_data_on_disk_size_for_query"):
        run(connection, "SELECT n FROM t ORDER BY far", limited)


def test_a_ratio_is_less_than_one(connection: Connection) -> None:
    with pytest.raises(BadArguments, match="less than 1"):
        run(connection, "SELECT 1", {"max_bytes_ratio_before_external_sort": 1.5})


def test_statistics_count_what_was_spilled(connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n FROM t ORDER BY far SETTINGS max_bytes_before_external_sort = 1000, max_block_size = 500"
        )
        cursor.fetchall()
        statistics = cursor.statistics
    assert statistics.spilled_bytes > 0
    assert statistics.spilled_uncompressed_bytes >= 8 * ROWS
    assert statistics.temporary_files == 1
    assert not +statistics.open_temporary_files


@pytest.mark.parametrize("name", KEYS)
def test_distinct_of_each_type(connection: Connection, name: str) -> None:
    check(connection, f"SELECT DISTINCT {key(name)} AS k, n % 900 FROM t")


@pytest.mark.parametrize("columns", ["far", "far % 700", "n % 400, far % 3", "toString(far)"])
def test_distinct_rows_whose_batches_have_few_or_many_repeats(
    connection: Connection, columns: str
) -> None:
    check(connection, f"SELECT DISTINCT {columns} FROM (SELECT * FROM t UNION ALL SELECT * FROM t)")
    check(connection, f"SELECT DISTINCT ON ({columns}) count() OVER () FROM t")


@pytest.mark.parametrize("name", KEYS)
def test_join_on_each_type(connection: Connection, name: str) -> None:
    check(
        connection,
        f"SELECT l.n, r.n FROM t AS l LEFT JOIN (SELECT * FROM t WHERE n % 2 = 0) AS r"
        f" ON l.{key(name)} = r.{key(name)} AND l.n % 97 = r.n % 97",
    )


@pytest.mark.parametrize("name", KEYS)
def test_except_and_limit_by_each_type(connection: Connection, name: str) -> None:
    rows = f"SELECT {key(name)} AS k, n % 13 AS m FROM t"
    for operator in ("EXCEPT", "INTERSECT", "EXCEPT DISTINCT", "INTERSECT DISTINCT"):
        check(connection, f"SELECT * FROM ({rows} {operator} {rows} WHERE n % 3 = 0)")
    check(
        connection,
        f"SELECT n FROM (SELECT * FROM t ORDER BY far) LIMIT 1, 2 BY {key(name)}, n % 200",
        ordered=True,
    )


LEFT = "(SELECT n % 900 AS k, n, toString(n) AS s FROM t WHERE n < 2000) AS l"
RIGHT = "(SELECT n % 700 AS k, n AS m, far AS s FROM t WHERE n < 2800) AS r"
FEW_LEFT = "(SELECT n % 3 AS k, n, toString(n) AS s FROM t WHERE n < 900) AS l"
ONE_KEY = "(SELECT 1 AS k, n AS m, far AS s FROM t WHERE n < 1200) AS r"
KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT ANY", "RIGHT ANY", "INNER ANY")


@pytest.mark.parametrize("use_nulls", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("left", "right"), [(LEFT, RIGHT), (FEW_LEFT, ONE_KEY)])
def test_kinds_of_join(
    connection: Connection, left: str, right: str, kind: str, use_nulls: int
) -> None:
    """Compare many keys, which are partitioned, and one key, whose rows no hash divides."""
    sql = f"SELECT l.n, l.s, r.m, r.s FROM {left} {kind} JOIN {right} ON l.k = r.k"
    nulls = {"join_use_nulls": use_nulls}
    expected, _ = run(connection, sql, {**IN_MEMORY, **nulls})
    rows, spilled_bytes = run(connection, sql, {**SPILLING, **nulls})
    assert sorted(rows) == sorted(expected)
    assert spilled_bytes > 0


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI"])
@pytest.mark.parametrize("condition", ["l.k = r.k", "l.k = r.k AND l.n + 500 < r.m"])
@pytest.mark.parametrize(("left", "right"), [(LEFT, RIGHT), (FEW_LEFT, ONE_KEY)])
def test_joins_that_answer_left_rows(
    connection: Connection, left: str, right: str, condition: str, kind: str
) -> None:
    check(connection, f"SELECT l.n, l.s FROM {left} {kind} JOIN {right} ON {condition}")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT l.n, r.m FROM {FEW_LEFT} CROSS JOIN {ONE_KEY}",
        f"SELECT l.n, r.m FROM {FEW_LEFT}, {ONE_KEY} WHERE l.n < r.m",
        f"SELECT l.n, r.m FROM {FEW_LEFT} LEFT JOIN {ONE_KEY} ON l.k = r.k AND l.n + 900 < r.m",
        f"SELECT l.n, r.m FROM {LEFT} INNER JOIN {RIGHT} ON l.k = r.k AND l.n < r.m",
        f"SELECT l.n, r.m FROM {LEFT} ASOF JOIN {RIGHT} ON l.k = r.k AND l.n >= r.m",
        f"SELECT l.n, r.m FROM {LEFT} ASOF LEFT JOIN {RIGHT} ON l.k = r.k AND l.n < r.m",
        f"SELECT l.n, r.m FROM {LEFT} JOIN {RIGHT} ON toInt64(l.k) = toUInt8(r.k % 250)",
    ],
)
def test_conditions_of_joins(connection: Connection, sql: str) -> None:
    check(connection, sql)


def test_threads_make_the_first_pairs_of_partitions(connection: Connection) -> None:
    """Compare a join of partitions that have more pairs than a thread makes before they are asked for."""
    sql = f"SELECT l.n, r.m FROM {LEFT} JOIN {RIGHT} ON l.k % 90 = r.k % 90"
    in_threads = {"max_bytes_before_external_join": 12_000, "max_threads": 2}
    expected, _ = run(connection, sql, IN_MEMORY)
    of_partition = 16 * len(expected) // PARTITIONS
    with (
        patch.object(joiner, "FIRST_PAIRS_BYTES", of_partition),
        patch.object(joiner, "_small_joins", wraps=joiner._small_joins) as in_turn,
    ):
        rows, spilled_bytes = run(connection, sql, in_threads)
        some, _ = run(connection, f"{sql} LIMIT 10", in_threads)
    assert 0 <= in_turn.call_args.args[3] < of_partition
    assert sorted(rows) == sorted(expected)
    assert spilled_bytes > 0
    assert len(some) == 10
    assert set(some) <= set(expected)


def test_operators_above_each_other(connection: Connection) -> None:
    check(
        connection,
        f"SELECT k, count() AS c, sum(m) FROM (SELECT DISTINCT l.k AS k, r.m AS m, l.n AS n"
        f" FROM {LEFT} JOIN {RIGHT} ON l.k = r.k ORDER BY r.s) GROUP BY k ORDER BY c DESC, k",
        ordered=True,
    )


SMALL = f"SELECT n * 2 AS m, {KEYS['Nullable(String)'].replace('number', 'n')} AS s FROM t"
SETS: Sequence[str] = (
    "SELECT n FROM t WHERE n IN (SELECT n * 2 FROM t)",
    "SELECT n FROM t WHERE n NOT IN (SELECT n * 2 FROM t) AND n % 3 = 0 AND far % 2 = 1",
    "SELECT n FROM t PREWHERE far IN (SELECT far FROM t WHERE n % 3 = 0) WHERE k6 IN (SELECT k6 FROM t)",
    "SELECT n FROM t WHERE n IN (SELECT n * 2 FROM t) OR n % 7 = 1",
    "SELECT n FROM t WHERE (n, k0) IN (SELECT n * 2, k0 FROM t)",
    f"SELECT s, m, s IN (SELECT s FROM ({SMALL})) FROM ({SMALL})",
    f"SELECT s, m, s NOT IN (SELECT s FROM ({SMALL}) WHERE m % 3 = 0) FROM ({SMALL})",
    f"SELECT s, m FROM ({SMALL}) WHERE s NOT IN (SELECT s FROM ({SMALL}) WHERE m % 3 = 0 OR m < 9000)",
    f"SELECT s, m FROM ({SMALL}) WHERE (s, m) NOT IN (SELECT s, n FROM ({SMALL}) AS small CROSS JOIN t WHERE n < 9)",
    "SELECT n IN (SELECT n * 2 FROM t) AS even, count(), sum(far) FROM t GROUP BY even",
    "SELECT n % 5, countIf(n IN (SELECT n * 2 FROM t)) FROM t GROUP BY n % 5",
    "SELECT n % 900 AS a, count() AS c FROM t GROUP BY a HAVING a IN (SELECT n * 3 FROM t)",
    "SELECT n FROM t WHERE n IN (SELECT n * 2 FROM t WHERE n IN (SELECT n * 3 FROM t))",
    "SELECT n FROM t WHERE far > (SELECT max(far) / 2 FROM t WHERE n IN (SELECT n * 3 FROM t))",
    "SELECT a.n, b.n FROM t AS a JOIN t AS b ON a.n = b.n + 1 WHERE a.n IN (SELECT n * 2 FROM t)",
)


@pytest.mark.parametrize("sql", SETS)
def test_sets_of_in(connection: Connection, sql: str) -> None:
    check(connection, sql)


@pytest.mark.parametrize("name", KEYS)
def test_sets_of_each_type(connection: Connection, name: str) -> None:
    members = f"SELECT {key(name)}, n FROM t WHERE n % 3 < 2"
    check(connection, f"SELECT n FROM t WHERE ({key(name)}, n) IN ({members})")
    check(connection, f"SELECT n FROM t WHERE ({key(name)}, n) NOT IN ({members})")


def test_rows_in_order_over_a_large_set_are_counted(connection: Connection) -> None:
    sql = "SELECT n FROM t WHERE n IN (SELECT n * 2 FROM t) ORDER BY n DESC LIMIT 5 FORMAT JSONCompact"
    answers = []
    for settings in (IN_MEMORY, SPILLING):
        given = ", ".join(f"{name} = {value}" for name, value in {**BATCHES, **settings}.items())
        with connection.cursor() as cursor:
            cursor.execute(sql.replace(" FORMAT", f" SETTINGS {given} FORMAT"))
            answers.append(cursor.fetchall())
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT arrayFilter(x -> x IN (SELECT n * 2 FROM t), [n, 3]) FROM t",
        "SELECT n IN (SELECT n * 2 FROM t) AS g, count() FROM t GROUP BY g WITH TOTALS",
    ],
)
def test_a_large_set_where_no_join_reaches_it_is_refused(connection: Connection, sql: str) -> None:
    with pytest.raises(MemoryLimitExceeded, match="set of an IN"):
        run(connection, sql, SPILLING)
    run(connection, sql, IN_MEMORY)
