"""Each rule by execution: plans with it and without it give the same rows on random data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

import olapdb
from olapdb.optimize import RULES, optimizer
from olapdb.plan.nodes import Node
from tests.unit.optimize.test_rules import PAIRED

pytestmark = pytest.mark.feature("select")

WORDS = ("UA", "AA", "", "x", "yes")
# Without its rule the range of a trillion numbers would be made.
QUERIES = [query.replace("1000000000000", "10000") for query in PAIRED]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """Connect to the tables of `tests.unit.bind.warehouse`, with random rows."""
    random = Random(13)
    with olapdb.connect() as made:
        made.execute(
            "CREATE TABLE flights (day Date, carrier String, origin String, delay Int32, distance Float64)"
            " ENGINE = MergeTree ORDER BY (carrier, day)"
        )
        made.execute(
            "CREATE TABLE carriers (carrier String, name String) ENGINE = MergeTree ORDER BY carrier"
        )
        made.execute(
            "CREATE VIEW late AS SELECT carrier, delay AS minutes FROM flights WHERE delay > 0"
        )
        flights = [
            f"('2013-01-0{random.randint(1, 3)}', '{random.choice(WORDS)}', '{random.choice(WORDS)}',"
            f" {random.randint(-3, 9)}, {random.randint(-3, 9)})"
            for _ in range(80)
        ]
        carriers = [f"('{random.choice(WORDS)}', '{random.choice(WORDS)}')" for _ in range(8)]
        made.execute(f"INSERT INTO flights VALUES {', '.join(flights)}")
        made.execute(f"INSERT INTO carriers VALUES {', '.join(carriers)}")
        yield made


def rows(connection: Any, query: str, rule: str) -> list[str]:
    """Return the rows of a query in one order. The comment keeps plans of other rules apart in the cache."""
    return sorted(map(repr, connection.execute(f"/* {rule} */ {query}").fetchall()))


@pytest.fixture(scope="module")
def expected(connection: Any) -> dict[str, list[str]]:
    return {q: rows(connection, f"{q} SETTINGS optimizer = 0", "none") for q in QUERIES}


def test_most_queries_have_rows(expected: dict[str, list[str]]) -> None:
    assert sum(map(bool, expected.values())) > len(QUERIES) - 4


@pytest.mark.parametrize(
    "rule", sorted(set(RULES), key=RULES.index), ids=lambda rule: rule.__name__
)
def test_no_answer_changes_with_or_without_a_rule(
    connection: Any,
    expected: dict[str, list[str]],
    rule: Callable[[Node], Node],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, rules in {
        "all but one": [one for one in RULES if one is not rule],
        "one alone": [rule],
    }.items():
        monkeypatch.setattr(optimizer, "RULES", rules)
        for query, answer in expected.items():
            assert rows(connection, query, f"{name}: {rule.__name__}") == answer, query
