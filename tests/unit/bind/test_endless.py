"""Rows without end: LIMIT from the end, and a share of them, are refused instead of never answering."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("select")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT number FROM system.numbers LIMIT -2",
        "SELECT number FROM numbers() LIMIT 0.1",
        "SELECT number FROM system.numbers WHERE number > 3 LIMIT 5 OFFSET 0.5",
        "SELECT * FROM (SELECT number + 1 FROM system.numbers) LIMIT -1",
    ],
)
def test_last_rows_of_endless_rows_are_refused(query: str) -> None:
    with olapdb.connect() as connection, pytest.raises(olapdb.Error, match="without end"):
        connection.execute(query)


def test_endless_rows_with_a_limit_below_have_last_rows() -> None:
    with olapdb.connect() as connection:
        query = "SELECT * FROM (SELECT number FROM system.numbers LIMIT 5) LIMIT -2"
        assert connection.execute(query).fetchall() == [(3,), (4,)]
