"""Keys that choose between a text column and a constant are codes, and change no answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.compute import group_codes
from olapdb.dbapi.connection import Connection
from olapdb.execute.operators import aggregate, coded_branches, coded_inputs
from olapdb.native import group_totals as native_totals
from olapdb.native.library import library

pytestmark = pytest.mark.feature("aggregates")

ROWS = 90_000
KEYS = [
    "if(n % 5 < 2, 'narrow', s)",
    "if(n % 5 < 2, s, 'b3')",
    "if(n % 5 < 2, s, s)",
    "if(x > 3, 'narrow', s)",
    "if(s = 'b1', 'one', s)",
    "if(1, 'always', s)",
    "if(n % 5 < 2, 'narrow', l)",
    "CASE WHEN n % 7 = 0 AND x IS NOT NULL THEN s ELSE '' END",
    "CASE WHEN n % 7 = 0 THEN s END",
    "multiIf(n % 7 = 0, s, n % 5 = 0, 'five', '')",
]
CODED = KEYS[:8]


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as made:
        made.execute(
            "CREATE TABLE t (n UInt32, x Nullable(UInt8), s String, l LowCardinality(String), p UInt8)"
            " ENGINE = MergeTree PARTITION BY p ORDER BY n"
        )
        for part in range(2):
            made.execute(
                "INSERT INTO t SELECT number, if(number % 3 = 0, NULL, number % 6),"
                f" concat('b', toString(number % {9 + part})) AS b, b, {part} FROM numbers({ROWS})"
            )
        yield made


def answer(connection: Connection, key: str) -> list[tuple[object, ...]]:
    query = f"SELECT {key} AS k, count(), sum(n), min(s) FROM t GROUP BY k ORDER BY k"
    return connection.execute(query).fetchall()


@pytest.mark.parametrize("key", KEYS)
def test_answers(key: str, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    coded = answer(connection, key)
    monkeypatch.setattr(coded_inputs, "branch_column", lambda *_: None)
    monkeypatch.setattr(coded_branches, "branch_column", lambda *_: None)
    assert answer(connection, key) == coded


@pytest.mark.parametrize("key", CODED)
def test_no_text_is_made(key: str, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(connection, key)  # the column cache has the codes then
    factorised, made = [], group_codes.factorise
    totalled, group_totals = [], native_totals.group_totals

    def numbered(columns: list[object], *others: object, **named: object) -> object:
        factorised.extend(columns)
        return made(columns, *others, **named)  # type: ignore[arg-type]

    def counted(columns: list[object], *others: object) -> object:
        totalled.extend(columns)
        return group_totals(columns, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(aggregate, "factorise", numbered)
    monkeypatch.setattr(aggregate, "group_totals", counted)
    answer(connection, key)
    found = [*factorised, *totalled]
    assert found or library() is None
    assert {str(column.type) for column in found} <= {"int32"}  # type: ignore[attr-defined]
