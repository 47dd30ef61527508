"""Statements by feature, beside ClickHouse: names, types, values and the names of errors agree.

Each file of `features/` is run in its order.  What creates and fills tables is run on both sides;
all else is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.answers import answer_of, oracle_answer, statements_of
from tests.harness.oracle import Oracle

FILES = sorted(Path(__file__).with_name("features").glob("*.sql"))
SETUP = ("CREATE ", "INSERT ")
QUERIES = [
    pytest.param(path.stem, statement, id=f"{path.stem}-{number}")
    for path in FILES
    for number, statement in enumerate(statements_of(path))
    if not statement.startswith(SETUP)
]
Engines = tuple[olapdb.Connection, Oracle]


@pytest.fixture(scope="module")
def engines(oracle: Oracle) -> Iterator[Engines]:
    connection = olapdb.connect()
    setup = [s for path in FILES for s in statements_of(path) if s.startswith(SETUP)]
    for statement in setup:
        connection.execute(statement)
        oracle.execute(statement)
    yield connection, oracle
    connection.close()
    for statement in setup:
        if created := re.match(r"CREATE TABLE (\w+)", statement):
            oracle.execute(f"DROP TABLE {created[1]}")


@pytest.mark.parametrize(("feature", "query"), QUERIES)
def test_same_answer(feature: str, query: str, engines: Engines) -> None:
    connection, oracle = engines
    assert answer_of(connection, query) == oracle_answer(oracle, query)
