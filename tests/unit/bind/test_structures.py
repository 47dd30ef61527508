"""The structures of table functions: names and types, and what is refused behind them."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import NotSupportedError

pytestmark = pytest.mark.feature("formats")


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        (
            "SELECT * FROM format(JSONEachRow, 'a Int8, b Array(Int8) DEFAULT [a]', '{}')",
            r"DEFAULT of column b, a Array\(Int8\)",
        ),
        (
            "SELECT * FROM format(JSONEachRow, 'a Int8, b Nullable(Int8) DEFAULT 3', '{}')",
            r"DEFAULT of column b, a Nullable\(Int8\)",
        ),
        ("SELECT * FROM format(Values, 'a Int8 DEFAULT 3', '(DEFAULT)')", "DEFAULT of column a"),
        ("SELECT * FROM format(JSONEachRow, 'a Int8 TTL now()', '{}')", "TTL of column a"),
        ("SELECT * FROM null('a Int8 MATERIALIZED 1')", "MATERIALIZED of column a"),
    ],
)
def test_a_clause_behind_a_type_is_refused_by_its_name(query: str, clause: str) -> None:
    with olapdb.connect() as connection, pytest.raises(NotSupportedError, match=clause):
        connection.execute(query).fetchall()


def test_a_text_that_is_no_structure_is_a_value() -> None:
    with olapdb.connect() as connection:
        rows = connection.execute("SELECT * FROM values('the default value', 'b')").fetchall()
    assert rows == [("the default value",), ("b",)]
