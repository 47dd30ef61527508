"""Every scalar function beside ClickHouse: type, values and errors over a table of every type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.errors import Error
from olapdb.functions import Environment
from tests.harness import typed_table
from tests.harness.expressions import Reader
from tests.harness.oracle import Oracle, OracleError
from tests.oracle.function_expressions import FAMILIES, KNOWN_DIFFERENCES

pytestmark = pytest.mark.feature("functions")

SYNTAX = frozenset(
    {
        "dateAdd",
        "dateSub",
        "date_add",
        "date_sub",
        "timestampAdd",
        "timestampSub",
        "timestamp_add",
        "timestamp_sub",
    }
)
"""Names that ClickHouse's parser rewrites, so that its list of functions lacks them."""
TABLE = "typed_for_functions"


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(typed_table.values(), typed_table.ROWS, Environment(database="t"))


@pytest.fixture(scope="module")
def table(oracle: Oracle) -> Iterator[str]:
    typed_table.create(oracle, TABLE)
    yield TABLE
    oracle.execute(f"DROP TABLE {TABLE}")


def _expected(oracle: Oracle, table: str, text: str) -> tuple[object, ...]:
    try:
        result = oracle.query(f"SELECT {text} AS v FROM {table} ORDER BY row")
    except OracleError as error:
        return ("error", error.code)
    return (result.types[0], [row[0] for row in result.rows])


def _found(reader: Reader, text: str) -> tuple[object, ...]:
    try:
        return reader.shown(text)
    except Error as error:
        return ("error", error.code)


def _alike(found: tuple[object, ...], expected: tuple[object, ...]) -> bool:
    """Return whether the values print alike; Float64 to 15 digits, since libm differs by
    platform."""
    if found == expected or found[0] != expected[0] or found[0] == "error":
        return found == expected
    if found[0] not in ("Float64", "Nullable(Float64)"):
        return False
    pairs = zip(found[1], expected[1], strict=True)  # type: ignore[call-overload]
    return all(
        a == b or (a and b and float(a) == pytest.approx(float(b), rel=1e-15)) for a, b in pairs
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_answers_as_clickhouse_does(
    oracle: Oracle, table: str, reader: Reader, family: str
) -> None:
    wrong = []
    for text in FAMILIES[family]:
        if text in KNOWN_DIFFERENCES:
            _found(reader, text)
            continue
        found, expected = _found(reader, text), _expected(oracle, table, text)
        if not _alike(found, expected):
            wrong.append(f"{text}\n  olapdb     {found}\n  ClickHouse {expected}")
    assert not wrong, "\n".join(wrong)


def test_differences_that_are_known_are_still_there(
    oracle: Oracle, table: str, reader: Reader
) -> None:
    gone = [
        text
        for text in KNOWN_DIFFERENCES
        if _alike(_found(reader, text), _expected(oracle, table, text))
    ]
    assert not gone


def test_every_name_exists_in_clickhouse_with_its_case_rule(oracle: Oracle) -> None:
    from olapdb.functions import aggregate_names, function_names
    from olapdb.functions.registry import definitions

    result = oracle.query("SELECT name, case_insensitive FROM system.functions")
    theirs = {row[0]: row[1] == "1" for row in result.rows}
    lowered = {name.lower() for name, insensitive in theirs.items() if name and insensitive}
    ours = (*function_names(), *aggregate_names())
    unknown = [n for n in ours if n not in theirs and n.lower() not in lowered and n not in SYNTAX]
    assert unknown == []
    stricter = [d.name for d in definitions() if theirs.get(d.name) and not d.case_insensitive]
    assert stricter == []


def _is_unknown(connection: olapdb.Connection, call: str) -> bool:
    try:
        connection.execute(f"SELECT {call}")
    except Error as error:
        return error.name == "UNKNOWN_FUNCTION"
    return False


def test_every_function_of_clickhouse_is_there_or_refused_by_its_name(oracle: Oracle) -> None:
    theirs = [row[0] for row in oracle.query("SELECT name FROM system.functions").rows]
    unknown = []
    with olapdb.connect() as connection:
        rows = connection.execute("SELECT lower(name) FROM system.functions").fetchall()
        listed = {row[0] for row in rows}
        for name in theirs:
            if not name or name.lower() in listed:
                continue
            if all(_is_unknown(connection, f"`{name}`({given})") for given in ("1", "")):
                unknown.append(name)
    assert unknown == []
