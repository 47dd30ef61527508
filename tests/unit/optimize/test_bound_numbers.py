"""Numbers below a condition: as few of them as it can keep, and the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.optimize.bound_numbers import bound_numbers
from olapdb.plan.nodes import Numbers
from olapdb.plan.tree import walk_nodes
from tests.unit.bind.warehouse import bind

pytestmark = pytest.mark.feature("select")

_CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(("=", "<", "<=", ">", ">=", "!=")), st.integers(-3, 40)).map(
        lambda pair: f"number {pair[0]} {pair[1]}"
    ),
    st.tuples(st.integers(-3, 40), st.sampled_from(("=", "<", "<=", ">", ">="))).map(
        lambda pair: f"{pair[0]} {pair[1]} number"
    ),
    st.lists(st.integers(0, 40), min_size=1, max_size=3).map(
        lambda values: f"number IN ({', '.join(map(str, values))})"
    ),
    st.just("number % 2 = 0"),
)


@given(
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 5),
    st.lists(_CONDITIONS, min_size=1, max_size=3),
)
def test_the_answer_is_that_of_all_numbers(
    start: int, count: int, step: int, conditions: list[str]
) -> None:
    """The subquery with OFFSET keeps the condition from the numbers."""
    source = f"numbers({start}, {count}, {step})"
    condition = " AND ".join(conditions)
    with olapdb.connect() as connection:
        bounded, whole = (
            connection.execute(
                f"SELECT number FROM {table} WHERE {condition} ORDER BY number"
            ).fetchall()
            for table in (source, f"(SELECT number FROM {source} LIMIT 1000 OFFSET 0)")
        )
    assert bounded == whole


@pytest.mark.parametrize(
    ("sql", "start", "count"),
    [
        ("SELECT number FROM system.numbers WHERE number IN (7, 3)", 3, 5),
        ("SELECT number FROM numbers(1000000000) WHERE number = 12345", 12345, 1),
        ("SELECT number FROM numbers(10, 100, 7) WHERE number > 20 AND number <= 40", 24, 3),
        ("SELECT number FROM system.numbers WHERE number < 0", 0, 0),
        ("SELECT number FROM system.numbers WHERE number != 3", 0, None),
        ("SELECT number FROM system.numbers WHERE number > 18446744073709551613", 2**64 - 2, 2),
        ("SELECT number + 1 FROM system.numbers LIMIT 5", 0, 5),
        ("SELECT number FROM numbers(7, 100) LIMIT 2, 5", 7, 7),
        ("SELECT number FROM numbers(3) LIMIT 5", 0, 3),
        ("SELECT number FROM numbers(30) ORDER BY number DESC LIMIT 5", 0, 30),
    ],
)
def test_only_the_numbers_that_the_condition_can_keep(
    sql: str, start: int, count: int | None
) -> None:
    root = bound_numbers(bind(sql).root)
    (numbers,) = (node for node in walk_nodes(root) if isinstance(node, Numbers))
    assert (numbers.start, numbers.count) == (start, count)
