"""Arguments of aggregates that occur in others are computed once for each batch, and change no answer."""

from __future__ import annotations

from typing import Any

import pytest

import olapdb
from olapdb.execute.operators import coded_inputs

pytestmark = pytest.mark.feature("aggregates")

ROWS = 500
QUERIES = [
    ("sum(a * b), sum(a * b * c), max(a * b)", 2),
    ("sum(a + c), sum((a + c) * b), sum((a + c) * b + 1)", 3),
    ("sum(a * c), sumIf(a * c, b > 3), count(a * c)", 2),
    ("uniqExact(concat(s, 'x')), max(length(concat(s, 'x')))", 2),
    ("sum(a * b), sum(b * a)", 2),
    ("max(if(b = 0, 0, intDiv(a, b))), sum(a)", 2),
]


@pytest.fixture(scope="module")
def connection() -> Any:
    with olapdb.connect() as made:
        made.execute(
            "CREATE TABLE t (g UInt8, a Int32, b Nullable(Int32), c Decimal(9, 2), s String)"
            " ENGINE = MergeTree ORDER BY a"
        )
        made.execute(
            "INSERT INTO t SELECT number % 3, number, if(number % 7 = 0, NULL, number % 5),"
            f" number / 4, toString(number % 4) FROM numbers({ROWS})"
        )
        yield made


@pytest.mark.parametrize(("aggregates", "evaluated_max"), QUERIES)
def test_shared_arguments(
    connection: Any, aggregates: str, evaluated_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT g, {aggregates} FROM t GROUP BY g ORDER BY g"
    calls = []
    evaluate = coded_inputs.evaluate_array

    def counted(expression: Any, *others: Any) -> Any:
        calls.append(expression)
        return evaluate(expression, *others)

    with monkeypatch.context() as patched:
        patched.setattr(coded_inputs, "evaluate_array", counted)
        shared = connection.execute(query).fetchall()
    computed = [call for call in calls if not isinstance(call, coded_inputs.ColumnRef)]
    assert len(computed) <= evaluated_max
    monkeypatch.setattr(coded_inputs, "_may_be_shared", lambda _: False)
    assert connection.execute(query).fetchall() == shared


def test_random_numbers_are_not_shared() -> None:
    with olapdb.connect() as made:
        query = "SELECT max(rand() * 1), min(rand() * 1 + 0) FROM numbers(100)"
        ((greatest, least),) = made.execute(query).fetchall()
    assert least < greatest
