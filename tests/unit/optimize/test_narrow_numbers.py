"""The ranges of numbers that a condition allows."""

from __future__ import annotations

import random

import pytest

import olapdb
from olapdb.plan.nodes import Filter
from olapdb.plan.number_ranges import ALL, allowed_ranges
from olapdb.plan.tree import all_nodes
from tests.unit.optimize.test_rules import bind

pytestmark = pytest.mark.feature("select")


def ranges_of(condition: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges that a condition on numbers() allows."""
    root = bind(f"SELECT number FROM numbers() WHERE {condition}").root
    (found,) = (node for node in all_nodes(root) if isinstance(node, Filter))
    return allowed_ranges(found.predicate, found.child.schema[0].name)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("number < 5", ((0, 4),)),
        ("5.5 > number", ((0, 5),)),
        ("number BETWEEN 3 AND 4 OR number IN (6, 5, 9)", ((3, 6), (9, 9))),
        ("number = 1.5", ()),
        ("number < 0", ()),
        ("number % 2 = 0", ALL),
        ("number > 3 AND number % 2 = 0", ((4, (1 << 64) - 1),)),
        ("number NOT IN (3)", ALL),
        ("number = 1 OR number % 2 = 0", ALL),
    ],
)
def test_ranges(condition: str, expected: tuple[tuple[int, int], ...]) -> None:
    assert ranges_of(condition) == expected


def test_ranges_keep_the_rows() -> None:
    """Random conditions on numbers with and without a column that hides them give the same rows."""
    randomness = random.Random(1)
    with olapdb.connect() as connection:
        for _ in range(60):
            parts = [
                f"number {randomness.choice(['<', '<=', '>', '>=', '='])} {randomness.randint(-3, 50) / 2}"
                for _ in range(3)
            ]
            condition = f"{parts[0]} {randomness.choice(['AND', 'OR'])} {parts[1]} OR {parts[2]}"
            source = f"numbers({randomness.randint(0, 9)}, 30, {randomness.randint(1, 4)})"
            narrow = f"SELECT groupArray(number) FROM {source} WHERE {condition}"
            plain = narrow.replace("number ", "(number + 0) ")
            assert connection.execute(narrow).fetchall() == connection.execute(plain).fetchall(), (
                narrow
            )


@pytest.mark.parametrize("start", [0, 1, 2, 3, 10_000, 16_000_000, (1 << 50) - 200, 10**17])
def test_primes_of_a_range(start: int) -> None:
    """The primes of 1,000 numbers are those that no smaller number divides, or that pass Fermat's
    test for many bases where this would take too long."""
    with olapdb.connect() as connection:
        sql = f"SELECT prime FROM primes() WHERE prime BETWEEN {start} AND {start + 1000}"
        found = [prime for (prime,) in connection.execute(sql).fetchall()]
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23)
    expected = [
        n
        for n in range(max(start, 2), start + 1001)
        if (all(n % d for d in range(2, int(n**0.5) + 1)) if n < 10**6 else True)
        and all(n <= b or pow(b, n - 1, n) == 1 for b in bases)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT number FROM system.numbers WHERE number BETWEEN 3 AND 5", [3, 4, 5]),
        ("SELECT number FROM numbers() WHERE number IN (7, 1)", [1, 7]),
        ("SELECT number FROM numbers() WHERE number >= 1e15 LIMIT 1", [10**15]),
        ("SELECT * FROM system.primes WHERE prime IN (2, 3, 4, 29)", [2, 3, 29]),
        ("SELECT prime FROM primes() WHERE prime > 1e15 LIMIT 1", [1000000000000037]),
        ("SELECT sum(prime) FROM primes() WHERE prime < 1000000", [37550402023]),
    ],
)
def test_queries_of_endless_numbers_end(query: str, expected: list[int]) -> None:
    """The answers are ClickHouse's."""
    with olapdb.connect() as connection:
        assert [value for (value,) in connection.execute(query).fetchall()] == expected


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT number + 1 FROM system.numbers LIMIT 5", 5),
        ("SELECT number FROM numbers(7, 100) LIMIT 2, 5", 7),
        ("SELECT number FROM numbers(3) LIMIT 5", 3),
        ("SELECT number FROM numbers(30) ORDER BY number DESC LIMIT 5", 30),
    ],
)
def test_a_limit_bounds_the_numbers_that_are_made(query: str, rows: int) -> None:
    with olapdb.connect() as connection:
        plan = connection.execute(f"EXPLAIN {query}").fetch_text().decode()
    assert f", {rows} rows" in plan
