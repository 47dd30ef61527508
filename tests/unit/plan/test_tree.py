"""The typed walks reach every node and every expression that a plan's fields hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from olapdb.optimize.share_subplans import share_subplans
from olapdb.plan import expressions, nodes
from olapdb.plan.tree import all_aggregate_calls, all_expressions, all_nodes, all_scans
from tests.unit.bind.warehouse import bind

pytestmark = pytest.mark.feature("select")

QUERIES = (
    "SELECT prime FROM loop(primes(3)) LIMIT 5",
    "SELECT a + 1 FROM format(CSV, 'a UInt8', '1')",
    "SELECT carrier, delay + 1 FROM flights PREWHERE delay > 1 WHERE day = '2013-01-01' ORDER BY delay",
    "SELECT carrier, sum(delay) AS s FROM flights GROUP BY carrier WITH ROLLUP HAVING s > 1",
    "SELECT carrier, sum(delay) AS s FROM flights GROUP BY carrier WITH TOTALS HAVING s > 1",
    "SELECT DISTINCT carrier FROM flights ORDER BY carrier LIMIT 3 WITH TIES",
    "SELECT DISTINCT ON (carrier) carrier, delay FROM flights LIMIT 5",
    "SELECT a.carrier FROM flights AS a LEFT JOIN flights AS b ON a.carrier = b.carrier AND a.delay < b.delay",
    "SELECT carrier FROM flights UNION ALL SELECT carrier FROM late",
    "SELECT carrier FROM flights EXCEPT SELECT carrier FROM late",
    "SELECT arrayJoin([delay, 2]) AS x, arrayMap(e -> e + delay, [1, 2]) FROM flights",
    "SELECT sum(delay) OVER (PARTITION BY carrier ORDER BY day ROWS 2 PRECEDING) FROM flights",
    "SELECT number, (SELECT max(minutes) FROM late) FROM numbers(10)",
    "SELECT delay IN (SELECT minutes FROM late WHERE minutes IN (1, 2)), delay IN (3, 4) FROM flights",
    "SELECT CAST(delay AS String), _table, 1 FROM flights",
    "SELECT carrier FROM flights LIMIT 2 BY carrier",
    "SELECT carrier, delay FROM flights ORDER BY delay LIMIT -3 WITH TIES",
    "SELECT a.carrier, b.minutes FROM flights AS a PASTE JOIN late AS b",
    "SELECT carrier, delay, day FROM flights ORDER BY carrier, day WITH FILL INTERPOLATE (delay AS delay + 1)",
    "SELECT name FROM system.tables",
    "WITH RECURSIVE r AS (SELECT delay FROM flights UNION ALL SELECT delay + 1 FROM r WHERE delay < 3) SELECT * FROM r",
    "SELECT dictGetOrDefault('named', 'name', carrier, toString(delay)) FROM flights",
    "SELECT max(delay) FROM flights UNION ALL SELECT max(delay) FROM flights",
    "SELECT 1",
)
NEVER_IN_PLANS = {
    "CorrelatedSubquery",
    "OuterColumn",
    "TotalsRow",
    "UnaryNode",
    "Unnested",
    "WindowExpression",
}


def root_of(query: str) -> nodes.Node:
    """Return the plan of a query, in which repeated parts are shared."""
    return share_subplans(bind(query)).root


def reflected(item: object) -> Iterator[object]:
    """Return every plan object that a field holds, directly or in tuples."""
    if isinstance(item, tuple):
        for one in item:
            yield from reflected(one)
    elif is_dataclass(item) and type(item).__module__.startswith("olapdb.plan"):
        yield item
        for field in fields(item):
            yield from reflected(getattr(item, field.name))


@pytest.mark.parametrize("query", QUERIES)
def test_nothing_is_left_out(query: str) -> None:
    root = root_of(query)
    held = list(reflected(root))

    def ids(kind: type) -> set[int]:
        return {id(one) for one in held if isinstance(one, kind)}

    # What a lambda's parameters and a window's frame declare is no expression over rows.
    declared = {
        id(one)
        for held_one in held
        for one in reflected(
            held_one.parameters
            if isinstance(held_one, expressions.LambdaFunction)
            else held_one.frame
            if isinstance(held_one, expressions.WindowCall)
            else ()
        )
    }
    walked = {id(part) for part in all_expressions(root)}
    assert {id(node) for node in all_nodes(root)} == ids(nodes.Node)
    assert {id(scan) for scan in all_scans(root)} == ids(nodes.Scan)
    assert {id(call) for call in all_aggregate_calls(root)} == ids(expressions.AggregateCall)
    assert walked >= ids(expressions.Expression) - declared
    assert walked <= ids(expressions.Expression)


def test_the_queries_have_every_kind_of_node_and_expression() -> None:
    """By name: a dataclass with slots leaves the class behind that it was made of."""
    kinds = {type(one).__name__ for query in QUERIES for one in reflected(root_of(query))}
    defined = {one.__name__ for base in (nodes.Node, expressions.Expression) for one in below(base)}
    assert defined - kinds == NEVER_IN_PLANS


def below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("olapdb.plan"):
            yield one
        yield from below(one)
