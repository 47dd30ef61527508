"""INSERT INTO FUNCTION file() and null(): the files that ClickHouse writes, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("formats", "insert")

_S = "'a UInt8, b String'"
_SCRIPTS = {
    "values": [f"INSERT INTO FUNCTION file('{{}}/a.csv', 'CSV', {_S}) VALUES (1, 'x'), (2, 'y')"],
    "table function": [f"INSERT INTO TABLE FUNCTION file('{{}}/a.csv', CSV, {_S}) VALUES (1, 'x')"],
    "a query": ["INSERT INTO FUNCTION file('{}/a.csv', 'CSV') SELECT number, 'x' FROM numbers(3)"],
    "by the ending": ["INSERT INTO FUNCTION file('{}/a.tsv') SELECT number AS n FROM numbers(3)"],
    "a query into a structure": [
        f"INSERT INTO FUNCTION file('{{}}/a.csv', 'CSVWithNames', {_S}) SELECT 1, 2"
    ],
    "columns": [f"INSERT INTO FUNCTION file('{{}}/a.csv', 'CSV', {_S}) (b) VALUES ('x')"],
    "a default": [
        "INSERT INTO FUNCTION file('{}/a.csv', CSV, 'a UInt8, b UInt8 DEFAULT a + 5') (a) VALUES (1)"
    ],
    "data of a format": [
        f"INSERT INTO FUNCTION file('{{}}/a.csv', 'CSV', {_S}) FORMAT JSONEachRow\n"
        '{{"a": 1, "b": "x"}}\n'
    ],
    "appended": [
        "INSERT INTO FUNCTION file('{}/a.csv', 'CSVWithNames') SELECT 1 AS n",
        "INSERT INTO FUNCTION file('{}/a.csv', 'CSVWithNames') SELECT 2 AS n",
    ],
    "replaced": [
        "INSERT INTO FUNCTION file('{}/a.csv', 'CSV') SELECT 1 AS n",
        "INSERT INTO FUNCTION file('{}/a.csv', 'CSV') SELECT 2 AS n"
        " SETTINGS engine_file_truncate_on_insert = 1",
    ],
    "not appended": [
        "INSERT INTO FUNCTION file('{}/a.json', 'JSON') SELECT 1 AS n"
        " SETTINGS output_format_write_statistics = 0",
        "INSERT INTO FUNCTION file('{}/a.json', 'JSON') SELECT 2 AS n",
    ],
    "another file": [
        "INSERT INTO FUNCTION file('{}/a.json', 'JSON') SELECT 1 AS n"
        " SETTINGS output_format_write_statistics = 0",
        "INSERT INTO FUNCTION file('{}/a.json', 'JSON') SELECT 2 AS n"
        " SETTINGS output_format_write_statistics = 0, engine_file_allow_create_multiple_files = 1",
        "INSERT INTO FUNCTION file('{}/a.json', 'JSON') SELECT 3 AS n"
        " SETTINGS output_format_write_statistics = 0, engine_file_allow_create_multiple_files = 1",
    ],
    "no structure": ["INSERT INTO FUNCTION file('{}/a.csv', 'CSV') VALUES (1)"],
    "too many values": [f"INSERT INTO FUNCTION file('{{}}/a.csv', 'CSV', {_S}) SELECT 1, 2, 3"],
    "null": ["INSERT INTO FUNCTION null('a UInt8') VALUES (1), (2)"],
    "null with settings": [
        "INSERT INTO FUNCTION null('a String') SETTINGS max_threads = 1 VALUES ('x')"
    ],
    "null of a query": ["INSERT INTO FUNCTION null('a UInt64') SELECT * FROM numbers(10)"],
    "null of a wrong query": ["INSERT INTO FUNCTION null('a UInt8, b UInt8') SELECT 1"],
    "a function that is read": ["INSERT INTO FUNCTION numbers(3) VALUES (1)"],
    "no function": ["INSERT INTO FUNCTION nothing_such(3) VALUES (1)"],
    "no path": ["INSERT INTO FUNCTION file() VALUES (1)"],
}


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


def _named(oracle: Oracle, sql: str) -> str:
    """Run a statement on ClickHouse and return the name of its error, "" for none."""
    try:
        oracle.execute(sql)
    except OracleError as error:
        return error.name
    return ""


def _own_name(connection: olapdb.Connection, sql: str) -> str:
    """Run a statement and return the name of its error, "" for none."""
    try:
        connection.execute(sql)
    except olapdb.Error as error:
        return error.name
    return ""


def _files(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", _SCRIPTS)
def test_files_and_refusals(name: str, oracle: Oracle, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    with olapdb.connect(settings={"user_files_path": str(ours)}) as connection:
        for sql in _SCRIPTS[name]:
            expected = _named(oracle, sql.format(theirs))
            assert _own_name(connection, sql.format(ours)) == expected, sql
    assert _files(ours) == _files(theirs)


def test_no_file_is_written_where_a_value_is_wrong(tmp_path: Path) -> None:
    """The rows are written under another name first, so that a failure leaves nothing."""
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        with pytest.raises(olapdb.Error):
            connection.execute(
                "INSERT INTO FUNCTION file('a.csv', 'CSV', 'n UInt8')"
                " SELECT throwIf(number = 200000) FROM numbers(300000)"
            )
        with pytest.raises(olapdb.Error) as refused:
            connection.execute("INSERT INTO FUNCTION file('/etc/a.csv', 'CSV') SELECT 1")
        assert refused.value.name == "DATABASE_ACCESS_DENIED"
    assert not list(tmp_path.iterdir())
