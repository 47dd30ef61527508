"""ASOF JOIN against a plain search, and in a materialized view."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

import olapdb
from olapdb.compute.context import ExecutionContext
from olapdb.errors import MemoryLimitExceeded
from olapdb.plan import nodes
from olapdb.types import INT64
from tests.unit.execute.build import call, col, rows_of, values

pytestmark = pytest.mark.feature("select", "views")
Rows = Sequence[tuple[int, int | None]]
COMPARE = {
    "less": lambda a, b: a < b,
    "lessOrEquals": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greaterOrEquals": lambda a, b: a >= b,
}


def joined(left: Rows, right: Rows, operator: str, kind: str, **settings: object) -> list[tuple]:
    """Run an ASOF join of (key, value) rows; the right rows also have their number."""
    a = values({"k": (INT64, [k for k, _ in left]), "t": (INT64, [t for _, t in left])})
    b = values(
        {
            "rk": (INT64, [k for k, _ in right]),
            "rt": (INT64, [t for _, t in right]),
            "at": (INT64, list(range(len(right)))),
        }
    )
    condition = call(operator, col("t", INT64), col("rt", INT64))
    node = nodes.Join(
        a, b, kind, "ASOF", (col("k", INT64),), (col("rk", INT64),), condition,
        (*a.schema, *b.schema),
    )  # fmt: skip
    context = ExecutionContext(settings=settings)
    context.batch_rows = 16
    return rows_of(node, context)


def searched(left: Rows, right: Rows, operator: str, kind: str) -> list[tuple]:
    """Return the same by comparing every pair: the nearest value, of equal ones the first row."""
    answer = []
    for k, t in left:
        candidates = [
            (abs(rt - t), at, rk, rt)
            for at, (rk, rt) in enumerate(right)
            if rk == k and t is not None and rt is not None and COMPARE[operator](t, rt)
        ]
        if candidates:
            _, at, rk, rt = min(candidates)
            answer.append((k, t, rk, rt, at))
        elif kind == "LEFT":
            answer.append((k, t, 0, 0, 0))
    return answer


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@pytest.mark.parametrize("operator", COMPARE)
@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_row_is_found(operator: str, kind: str, seed: int) -> None:
    draw = random.Random(seed)

    def rows(count: int, keys: int) -> Rows:
        return [
            (draw.randrange(keys), None if draw.random() < 0.1 else draw.randrange(-20, 20))
            for _ in range(count)
        ]

    left, right = rows(100, 4), rows(draw.choice([0, 1, 60]), 3)
    assert joined(left, right, operator, kind) == searched(left, right, operator, kind)


def test_memory_is_limited() -> None:
    query = (
        "SELECT count() FROM numbers(10) AS a ASOF JOIN (SELECT number AS n, 1 AS k"
        " FROM numbers(1000000)) AS b ON 1 + a.number * 0 = b.k AND a.number >= b.n"
    )
    with olapdb.connect(settings={"max_memory_usage": 1_000_000}) as connection:
        assert connection.execute(query).fetchall() == [(10,)]  # sorted on disk
        never = "max_bytes_ratio_before_external_join = 0, max_bytes_ratio_before_external_sort = 0"
        with pytest.raises(MemoryLimitExceeded, match="JOIN"):
            connection.execute(f"{query} SETTINGS {never}").fetchall()


def test_a_view_with_asof_join_is_unproven() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE s (k Int8, t Int32) ENGINE = MergeTree ORDER BY k")
        connection.execute(
            "CREATE TABLE d (k Int8, t Int32, p Int32) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute("INSERT INTO d VALUES (1, 2, 20), (1, 5, 50)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY k"
            " AS SELECT k, t, p FROM s ASOF LEFT JOIN d ON s.k = d.k AND s.t >= d.t"
        )
        connection.execute("INSERT INTO s VALUES (1, 1), (1, 4), (1, 9)")
        assert connection.execute("SELECT * FROM v ORDER BY t").fetchall() == [
            (1, 1, 0),
            (1, 4, 20),
            (1, 9, 50),
        ]
        plan = connection.execute("EXPLAIN VIEW v").fetchall()
        assert any("ASOF" in str(line) for line in plan)
