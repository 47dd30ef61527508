"""Every aggregate gives the same from states that were written to disk as from those in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, InternalError
from tests.property.test_every_aggregate import (
    ARGUMENTS,
    COLUMNS,
    PARAMETERS,
    equal,
    literal,
    names_of_aggregates,
)

pytestmark = pytest.mark.feature("aggregates", "settings")

TRIED = 3
"""The number of argument lists that are tried for an aggregate."""
BATCHES = "max_block_size = 100, max_threads = 1"
IN_MEMORY = f"max_bytes_ratio_before_external_group_by = 0, {BATCHES}"
SPILLING = f"max_bytes_before_external_group_by = 1, {BATCHES}"


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Connect to a table of 1,200 rows in 150 groups, with a column of each type."""
    chance = random.Random(13)
    with olapdb.connect() as opened:
        columns = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
        opened.execute(f"CREATE TABLE s ({columns}) ENGINE = MergeTree ORDER BY tuple()")
        rows = (f"({', '.join(literal(name, chance) for name in COLUMNS)})" for _ in range(60))
        opened.execute(f"INSERT INTO s VALUES {', '.join(rows)}")
        opened.execute(
            "CREATE TABLE t ENGINE = MergeTree ORDER BY tuple() AS SELECT"
            " intHash32(row_number() OVER ()) % 150 AS g, s.* FROM s CROSS JOIN numbers(20) AS copies"
        )
        yield opened


def groups(connection: Connection, call: str, settings: str) -> tuple[list[tuple], int]:
    """Return the result of each group, and the bytes that were spilled."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT g, {call} FROM (SELECT * FROM t) GROUP BY g ORDER BY g SETTINGS {settings}"
        )
        rows = cursor.fetchall()
        return rows, cursor.statistics.spilled_bytes


@pytest.mark.parametrize("name", names_of_aggregates())
def test_states_from_disk_give_the_same(connection: Connection, name: str) -> None:
    parameters = PARAMETERS.get(name, "(0.1, 0.9)" if name.startswith("quantiles") else "")
    arguments = list(ARGUMENTS)
    random.Random(name).shuffle(arguments)
    tried = 0
    for columns in [(), *arguments]:
        if tried == TRIED:
            break
        call = f"{name}{parameters}({', '.join(columns)})"
        try:
            expected, nothing = groups(connection, call, IN_MEMORY)
        except InternalError:
            raise
        except Error:
            continue  # not of these types, or a function of windows
        tried += 1
        rows, spilled_bytes = groups(connection, call, SPILLING)
        assert nothing == 0
        assert spilled_bytes > 0
        assert equal(rows, expected), call
