"""What a condition leaves of parts is kept for the next query, unless the condition itself is large."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection

pytestmark = [
    pytest.mark.feature("select"),
    pytest.mark.warehouse(
        "CREATE TABLE t (k UInt64, s String) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO t SELECT number, toString(number) FROM numbers(20000)",
        merges=False,
    ),
]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("k > 100", 1),
        ("k IN (1, 2, 3)", 1),
        (f"k IN ({', '.join(map(str, range(5_000)))})", 0),
        (f"s > '{'x' * 5_000}'", 0),
        ("k IN (SELECT 7)", 0),
    ],
)
def test_selections_of_short_conditions_are_kept(
    connection: Connection, condition: str, kept: int
) -> None:
    selections = connection.session.engine.services.store.cache.selections
    before = len(selections)
    answers = {
        connection.execute(f"SELECT count() FROM t WHERE {condition}").fetchone() for _ in range(2)
    }
    assert len(answers) == 1
    assert len(selections) - before == kept
