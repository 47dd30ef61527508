"""Every function and aggregate, called with arguments of any type at the ends of their ranges,
returns a column of the promised type or an error of the tree with a code and a message.

tests/oracle compares values with ClickHouse's. Only olapdb runs here, so any call can be drawn."""

from __future__ import annotations

import random
import re
import time

import pyarrow as pa
import pytest

import olapdb
from olapdb.functions import aggregate_names, function_names
from tests.harness import typed_table

pytestmark = pytest.mark.feature("functions")

CALLS, LONG_SECONDS = 15_000, 600
WAITING = frozenset({"throwIf", "sleep", "sleepEachRow"})
CONSTANTS = (
    "0",
    "1",
    "-1",
    "3",
    "255",
    "-128",
    "65536",
    "-9223372036854775808",
    "18446744073709551615",
    "0.5",
    "1e20",
    "1e308",
    "nan",
    "-inf",
    "true",
    "NULL",
    "toDecimal32(1.5, 2)",
    "toDecimal64(-3, 4)",
    "toDecimal256('99999999999999999999999999999999999999999999999999999999.5', 20)",
    "toDecimal128('9999999999999999999999999999.0000000001', 10)",
    "toInt8(-128)",
    "toFloat32(0.1)",
    "''",
    "'a'",
    "'ÄÖ'",
    "','",
    "'%'",
    "'('",
    "'x*'",
    "'[a-z]'",
    "'UTC'",
    "'day'",
    "'2024-01-01'",
    "'%Y-%m'",
    "'UInt8'",
    "'Nullable(String)'",
    "unhex('ff00')",
    "toFixedString('ab', 3)",
    "toDate('2149-06-06')",
    "toDateTime(4294967295)",
    "toDate32('1900-01-01')",
    "toDateTime64('2299-12-31 23:59:59.999', 3)",
    "toDateTime64('1900-01-01 00:00:00', 9, 'UTC')",
    "INTERVAL 1 MONTH",
    "INTERVAL -3 HOUR",
    "[]",
    "[1, NULL]",
    "[[]]",
    "[nan]",
    "['a', 'b']",
    "[(1, 'a')]",
    "tuple()",
    "(1, NULL)",
    "map()",
    "map('a', 1)",
    "materialize(NULL)",
    "toUUID('00010203-0405-0607-0809-0a0b0c0d0e0f')",
    "toLowCardinality('x')",
)
COMBINATORS = (
    "",
    "If",
    "OrNull",
    "OrDefault",
    "Distinct",
    "Array",
    "State",
    "ArgMin",
    "ForEach",
    "Resample",
    "ArrayIf",
    "SimpleState",
)
PARAMETERS = ("", "", "(0.5)", "(3)", "(18446744073709551615)", "('a')", "(0, 10, 3)", "(nan)")
READS = ("FROM typed", "FROM typed WHERE u8 > 255", "FROM typed CROSS JOIN numbers(200) AS n", "")


class Calls:
    """A generator of random SELECTs of one function call each."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self._functions = [n for n in function_names() if n not in WAITING]
        self._aggregates = aggregate_names()

    def statement(self) -> str:
        draw = self.draw
        read = draw.choice(READS)
        arguments = [self._argument(read) for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4)))]
        if draw.random() < 0.25:
            name = draw.choice(self._aggregates) + draw.choice(COMBINATORS)
            name += draw.choice(PARAMETERS)
            group = " GROUP BY b" if read and draw.random() < 0.5 else ""
            return f"SELECT {name}({', '.join(arguments)}) {read}{group}"
        return f"SELECT {draw.choice(self._functions)}({', '.join(arguments)}) {read}"

    def scalar(self) -> str:
        """Return a call of a scalar function over columns of the table."""
        arguments = [self._argument("typed") for _ in range(self.draw.choice((1, 1, 2, 2, 3)))]
        return f"{self.draw.choice(self._functions)}({', '.join(arguments)})"

    def _argument(self, read: str) -> str:
        if read and self.draw.random() < 0.5:
            return self.draw.choice(tuple(typed_table.COLUMNS))
        return self.draw.choice(CONSTANTS)


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    opened = olapdb.connect()
    columns = typed_table.values()
    opened.execute(
        "CREATE TABLE typed ("
        + ", ".join(f"{name} {type_name}" for name, (type_name, _) in typed_table.COLUMNS.items())
        + ") ORDER BY tuple()"
    )
    given = {name: value.column for name, value in columns.items() if name != "id"}
    opened.insert("typed", pa.table(given))  # Arrow has no UUID, so `id` gets its default
    return opened


def check(connection: olapdb.Connection, statement: str) -> None:
    """Run the statement; raise AssertionError unless it gives columns of their types or a proper
    error."""
    try:
        result = connection.session.execute(statement)
        table = result.read_all()
    except olapdb.Error as error:
        wrong = isinstance(error, olapdb.InternalError) or not error.code or not error.message
        if wrong:
            raise AssertionError(f"{statement}: {error}") from error
        return
    for column, data_type in zip(table.columns, result.types, strict=True):
        assert column.type == data_type.arrow, statement
        column.validate()


def test_any_call_gives_a_column_or_an_error(connection: olapdb.Connection) -> None:
    calls = Calls(1)
    for _ in range(CALLS):  # a number of calls, so that every machine checks the same ones
        check(connection, calls.statement())


@pytest.mark.soak
@pytest.mark.timeout(2 * LONG_SECONDS)
def test_any_call_for_long(connection: olapdb.Connection) -> None:
    calls, deadline = Calls(time.time_ns()), time.monotonic() + LONG_SECONDS
    while time.monotonic() < deadline:
        check(connection, calls.statement())


OF_BLOCKS = re.compile(
    r"(?i)rand|shuffle|uuid|ulid|snowflake|serial|now|fuzz|block|running|neighbor|lowCardinality|dumpColumn|elapsed"
)
"""Functions that declare that they depend on more than their row: on a block, a clock or a die."""
CALLS_ALONE = 150


def test_a_row_is_computed_without_the_other_rows(connection: olapdb.Connection) -> None:
    """A view's rows would depend on how an INSERT is cut, and a comparison would find others."""
    calls, compared = Calls(2), 0
    while compared < CALLS_ALONE:
        call = calls.scalar()
        statement = f"SELECT toString({call}) FROM typed"
        if OF_BLOCKS.search(call):
            continue
        try:
            together = connection.execute(statement).fetchall()
        except olapdb.Error:
            continue
        alone = connection.execute(f"{statement} SETTINGS max_block_size = 1").fetchall()
        assert alone == together, statement
        compared += 1


EXCEPTIONS = (
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    pa.ArrowInvalid("Invalid UTF8"),
    MemoryError(),
    pa.ArrowNotImplementedError("no kernel"),
    ZeroDivisionError("by zero"),
    pa.ArrowInvalid("Decimal value does not fit in precision 37"),
    KeyError("x"),
)
NAMES = (
    "CANNOT_CONVERT_TYPE",
    "CANNOT_CONVERT_TYPE",
    "MEMORY_LIMIT_EXCEEDED",
    "NOT_IMPLEMENTED",
    "LOGICAL_ERROR",
    "DECIMAL_OVERFLOW",
    "LOGICAL_ERROR",
)


@pytest.mark.parametrize(("error", "name"), [*zip(EXCEPTIONS, NAMES, strict=True)])
def test_what_an_exception_of_python_or_arrow_means(error: Exception, name: str) -> None:
    told = olapdb.errors.foreign_error(error, "Function f of (String)")
    assert told is not None
    assert told.name == name
    assert told.message.startswith("Function f of (String)")
    assert told.hint


def test_what_is_no_calculation_is_left_alone() -> None:
    assert olapdb.errors.foreign_error(OSError(5, "lost"), "The statement") is None
    assert olapdb.errors.foreign_error(KeyboardInterrupt(), "The statement") is None
