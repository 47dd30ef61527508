"""INSERT … FORMAT: the rows that ClickHouse inserts from the same data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("formats")

_TABLE = (
    "CREATE OR REPLACE TABLE inserted (a UInt8 DEFAULT 7, b Nullable(String) DEFAULT 'q',"
    " c String, d Array(UInt8)) ENGINE = MergeTree ORDER BY a"
)
_INSERTS = {
    "TSKV": "FORMAT TSKV\na=1\tb=x\tc=y\na=2\tb=z\td=[1,2]\na=3\tb=\\N\na=4\tc=u\nb=9\n",
    "TSKV without its last line feed": "FORMAT TSKV\na=1\tb=x",
    "JSONAsString": '(c) FORMAT JSONAsString\n{"foo":{"bar":{"x":"y"},"baz":1}}, {"a": []}',
    "JSONAsString of a list": '(c) FORMAT JSONAsString [{"id": 1}, {"id": 2}]',
    "JSONAsString of what is no object": '(c) FORMAT JSONAsString {"id": 1},{}]',
    "CustomSeparated": "SETTINGS format_custom_field_delimiter = ',', format_custom_escaping_rule = 'CSV'"
    ' FORMAT CustomSeparatedWithNames\na,c\n1,"x"\n2,y\n',
    "Regexp": "SETTINGS format_regexp = '([0-9]+) (.*) (.*) (.*)' FORMAT Regexp\n1 x y [1,2]\n2 z u []\n",
    "JSONObjectEachRow": 'FORMAT JSONObjectEachRow\n{"x": {"a": 1}, "y": {"c": "t", "b": null}}',
    "JSONAsString of many columns": 'FORMAT JSONAsString {"id": 1}',
}


def test_nested_columns_from_objects(oracle: Oracle, connection: olapdb.Connection) -> None:
    """input_format_import_nested_json reads the columns of a Nested from an object."""
    table = "CREATE OR REPLACE TABLE nested (n Nested(s String, i Int32)) ENGINE = Memory"
    insert = (
        "INSERT INTO nested SETTINGS input_format_import_nested_json = 1 FORMAT JSONEachRow\n"
        '{"n": {"s": ["abc", "def"], "i": [1, 23]}}\n{"n": {"i": [], "s": []}}\n{}'
    )
    for statement in (table, insert):
        oracle.execute(statement)
        connection.execute(statement)
    rows = "SELECT * FROM nested ORDER BY ALL"
    assert connection.execute(rows).fetch_text("TSV") == oracle.text(rows, "TSV")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as connection:
        yield connection


def _inserted(oracle: Oracle, insert: str) -> str:
    """Return the name of ClickHouse's error, empty for none."""
    try:
        oracle.execute(insert)
    except OracleError as error:
        return error.name
    return ""


@pytest.mark.parametrize("name", _INSERTS)
def test_inserted_rows(name: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    """Equal rows, or an error of the same name and no rows."""
    insert = f"INSERT INTO inserted {_INSERTS[name]}"
    oracle.execute(_TABLE)
    connection.execute(_TABLE)
    refused = _inserted(oracle, insert)
    if refused:
        with pytest.raises(olapdb.Error) as error:
            connection.execute(insert)
        assert error.value.name == refused
    else:
        connection.execute(insert)
    rows = "SELECT * FROM inserted ORDER BY ALL"
    assert connection.execute(rows).fetch_text("TSV") == oracle.text(rows, "TSV")
