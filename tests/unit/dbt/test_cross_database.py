"""The SQL of dbt's cross-database macros, run on the engine."""

from __future__ import annotations

import pytest
from dbt.adapters.olapdb.cross_database import dated, listagg
from dbt_common.exceptions import CompilationError

import olapdb

pytestmark = pytest.mark.feature("dbt")

ROWS = """(select * from values('v Nullable(String), a Nullable(Int64), b String',
    ('w', 2, 'x'), ('q', 1, 'y'), (NULL, 0, 'x'), ('r', NULL, 'z'), ('s', 1, 'x'), ('q', 1, 'y')))"""


@pytest.mark.parametrize(
    ("measure", "order_by", "limit", "expected"),
    [
        ("v", "order by v", None, "q,q,r,s,w"),
        ("v", "order by v desc", 2, "w,s"),
        ("distinct v", "order by v", None, "q,r,s,w"),
        ("v", "order by a, v", None, "q,q,s,w,r"),
        ("v", "order by a desc, v", None, "r,w,q,q,s"),
        ("v", "order by a desc nulls last, b, v", None, "w,s,q,q,r"),
        ("v", "order by a nulls first, b desc, v", None, "r,q,q,s,w"),
        ("v", "order by length(b), upper(v) desc", 3, "w,s,r"),
        ("v", None, 2, "w,q"),
    ],
)
def test_listagg(measure: str, order_by: str | None, limit: int | None, expected: str) -> None:
    with olapdb.connect() as connection:
        cursor = connection.cursor()
        cursor.execute(
            f"select {listagg(measure, chr(39) + ',' + chr(39), order_by, limit)} from {ROWS}"
        )
        assert cursor.fetchall() == [(expected,)]


def test_listagg_refuses_what_is_no_order() -> None:
    with pytest.raises(CompilationError, match="no ORDER BY clause"):
        listagg("v", "','", "partition by v", None)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'2024-01-31'", "toDate('2024-01-31')"),
        ("'1969-07-20'", "toDate32('1969-07-20')"),
        ("'1999-12-31 23:59:59.999999'", "toDateTime64('1999-12-31 23:59:59.999999', 6)"),
        ("created_at", "created_at"),
        ("'tomorrow'", "'tomorrow'"),
    ],
)
def test_literals_of_dates(expression: str, expected: str) -> None:
    assert dated(expression) == expected
