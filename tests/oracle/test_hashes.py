"""Hashes of any values beside ClickHouse, bit for bit, over strings of every length up to 300."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from tests.harness.answers import answer_of, oracle_answer, statements_of
from tests.harness.oracle import Oracle

QUERIES = statements_of(Path(__file__).with_name("hashes.sql"))


@pytest.mark.parametrize("query", QUERIES)
def test_same_answer(query: str, oracle: Oracle) -> None:
    connection = olapdb.connect()
    assert answer_of(connection, query) == oracle_answer(oracle, query)
    connection.close()


def test_arrays_and_decimals_are_refused() -> None:
    connection = olapdb.connect()
    for argument in ("[1, 2]", "toDecimal32(1, 2)"):
        with pytest.raises(olapdb.errors.IllegalTypeOfArgument, match="cityHash64"):
            connection.execute(f"SELECT cityHash64({argument})")
    connection.close()
