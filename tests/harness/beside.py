"""Compare a query with ClickHouse: same types and the same values as text, or the same error."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from tests.harness.oracle import Oracle, OracleError


def assert_same(connection: Connection, oracle: Oracle, query: str) -> None:
    """Require equal rows in any order; where ClickHouse refuses the query, require its error
    code."""
    code = 0
    try:
        there = oracle.query(query)
    except OracleError as refused:
        code = refused.code
    if code:
        with pytest.raises(Error) as raised:
            connection.execute(query).fetchall()
        assert raised.value.code == code, query
        return
    cursor = connection.execute(query)
    assert tuple(str(field[1]) for field in cursor.description or ()) == there.types, query
    names = ", ".join(f"_{i}" for i in range(len(there.types)))
    shown = ", ".join(f"toString(_{i})" for i in range(len(there.types)))
    texts = f"WITH q ({names}) AS ({query}) SELECT {shown} FROM q ORDER BY ALL"
    assert connection.execute(texts).fetchall() == oracle.query(texts).rows, query
