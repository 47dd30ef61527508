"""Each rule, by the plan that EXPLAIN shows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from olapdb.optimize import RULES, optimize, optimizer
from olapdb.plan.explain import explain
from olapdb.plan.expressions import Call
from olapdb.plan.nodes import Limit, Node, Project, Scan, Sort, Values
from olapdb.plan.tree import walk_nodes
from tests.unit.bind.warehouse import bind

pytestmark = pytest.mark.feature("select")

CASES = {
    "a condition reaches the scan through a view": (
        "SELECT carrier FROM late WHERE carrier = 'UA'",
        """
        ReadFromMergeTree (default.flights)
            Columns: carrier
            Filter: (delay > 0) AND (carrier = 'UA')
        """,
    ),
    "sums of a column plus constants are one sum and one count": (
        "SELECT sum(delay + 1), sum(delay - 2), sum(3 - delay) FROM flights",
        """
        Expression
            Columns: __shifted_1 + (toInt64(__shifted_2) * 1) AS sum(…), __shifted_1 - (toInt64(__shifted_2) * 2) AS sum(…)_2, (toInt64(__shifted_2) * 3) - __shifted_1 AS sum(…)_3
          Aggregating
              Keys: none
              Aggregates: sum(delay), count()
            ReadFromMergeTree (default.flights)
                Columns: delay
        """,
    ),
    "keys that other keys decide are computed for each group": (
        "SELECT delay, delay - 1, upper(carrier), 7 AS n, count() FROM flights GROUP BY delay, carrier, delay - 1, "
        "upper(carrier), n",
        """
        Expression
            Columns: delay, delay - 1 AS minus(delay, 1), upper(carrier) AS upper(carrier), 7 AS n, count()
          Aggregating
              Keys: delay, carrier
              Aggregates: count()
            ReadFromMergeTree (default.flights)
                Columns: carrier, delay
        """,
    ),
    "texts of keys are made of the groups": (
        "SELECT toString(delay) AS d, concat('at ', carrier) AS c, (carrier, hex(delay % 3)) AS t, count() FROM flights "
        "GROUP BY d, c, t HAVING c != 'at UA'",
        """
        Expression
            Columns: toString(delay) AS d, concat('at ', carrier) AS c, tuple(carrier, hex(delay % 3)) AS t, count()
          Aggregating
              Keys: delay, carrier
              Aggregates: count()
            ReadFromMergeTree (default.flights)
                Columns: carrier, delay
                Filter: concat('at ', carrier) != 'at UA'
        """,
    ),
    "texts of floats, which may be equal, are keys": (
        "SELECT toString(delay / 2) AS d, count() FROM flights GROUP BY d",
        """
        Aggregating
            Keys: toString(delay / 2) AS d
            Aggregates: count()
          ReadFromMergeTree (default.flights)
              Columns: delay
        """,
    ),
    "a key that no other key decides stays": (
        "SELECT delay - 1, day, count() FROM flights GROUP BY delay - 1, day",
        """
        Aggregating
            Keys: delay - 1 AS minus(delay, 1), day
            Aggregates: count()
          ReadFromMergeTree (default.flights)
              Columns: day, delay
        """,
    ),
    "distinct texts are grouped, then counted": (
        "SELECT day, count(DISTINCT carrier), count(), max(delay), uniqExact(carrier) FROM flights "
        "GROUP BY day",
        """
        Aggregating
            Keys: day
            Aggregates: count(__distinct), sum(count()), max(max(delay))
          Aggregating
              Keys: day, carrier AS __distinct
              Aggregates: count(), max(delay)
            ReadFromMergeTree (default.flights)
                Columns: day, carrier, delay
        """,
    ),
    "distinct texts beside an average stay": (
        "SELECT count(DISTINCT carrier), avg(delay) FROM flights",
        """
        Aggregating
            Keys: none
            Aggregates: uniqExact(carrier), avg(delay)
          ReadFromMergeTree (default.flights)
              Columns: carrier, delay
        """,
    ),
    "distinct numbers stay": (
        "SELECT count(DISTINCT delay) FROM flights",
        """
        Aggregating
            Keys: none
            Aggregates: uniqExact(delay)
          ReadFromMergeTree (default.flights)
              Columns: delay
        """,
    ),
    "sums of floats plus constants stay": (
        "SELECT sum(delay + 0.5) FROM flights",
        """
        Aggregating
            Keys: none
            Aggregates: sum(delay + 0.5)
          ReadFromMergeTree (default.flights)
              Columns: delay
        """,
    ),
    "a tuple made of columns is taken apart": (
        "SELECT carrier FROM flights WHERE (carrier, delay) = ('UA', 5) AND (day, delay).2 > 3",
        """
        ReadFromMergeTree (default.flights)
            Columns: carrier
            Filter: (carrier = 'UA') AND (delay = 5) AND (delay > 3)
        """,
    ),
    "a condition on keys goes below the grouping, one on aggregates stays": (
        "SELECT day, count() AS n FROM flights GROUP BY day HAVING day > '2013-01-01' AND n > 1",
        """
        Filter
            Condition: count() > 1
          Aggregating
              Keys: day
              Aggregates: count()
            ReadFromMergeTree (default.flights)
                Columns: day
                Filter: day > '2013-01-01'
        """,
    ),
    "conditions go to their side of a join": (
        "SELECT name FROM flights JOIN carriers ON flights.carrier = carriers.carrier "
        "WHERE delay > 5 AND name != 'x' AND delay > length(name)",
        """
        Expression
            Columns: name
          Filter
              Condition: delay > length(name)
            Join (INNER)
                Keys: carrier = carrier_2
              ReadFromMergeTree (default.flights)
                  Columns: carrier, delay
                  Filter: delay > 5
              ReadFromMergeTree (default.carriers)
                  Columns: carrier, name
                  Filter: name != 'x'
        """,
    ),
    "a condition on what stands beside the arrays goes below ARRAY JOIN, and nothing else is read": (
        "SELECT carrier, x FROM (SELECT carrier, delay, day, x FROM flights ARRAY JOIN [1, 2] AS x) "
        "WHERE carrier = 'UA' AND x > 1 AND delay > x",
        """
        Expression
            Columns: carrier, x
          Filter
              Condition: (x > 1) AND (delay > x)
            ArrayJoin (ARRAY JOIN)
                Arrays: [1, 2] AS x
              ReadFromMergeTree (default.flights)
                  Columns: carrier, delay
                  Filter: carrier = 'UA'
        """,
    ),
    "not to the side whose missing rows are filled in": (
        "SELECT delay FROM flights LEFT JOIN carriers ON flights.carrier = carriers.carrier "
        "WHERE name = ''",
        """
        Expression
            Columns: delay
          Filter
              Condition: name = ''
            Join (LEFT)
                Keys: carrier = carrier_2
              ReadFromMergeTree (default.flights)
                  Columns: carrier, delay
              ReadFromMergeTree (default.carriers)
                  Columns: carrier, name
        """,
    ),
    "a comma with an equality is an inner join": (
        "SELECT count() FROM flights, carriers WHERE flights.carrier = carriers.carrier AND delay > 1",
        """
        Aggregating
            Keys: none
            Aggregates: count()
          Join (INNER)
              Keys: carrier = carrier_2
            ReadFromMergeTree (default.flights)
                Columns: carrier
                Filter: delay > 1
            ReadFromMergeTree (default.carriers)
                Columns: carrier
        """,
    ),
    "a relation without an equality to those before it waits for one": (
        "SELECT count() FROM flights AS f, flights AS g, carriers AS c "
        "WHERE c.name = g.origin AND f.carrier = c.carrier AND f.delay > g.distance",
        """
        Aggregating
            Keys: none
            Aggregates: count()
          Filter
              Condition: delay > distance
            Join (INNER)
                Keys: name = origin
              Join (INNER)
                  Keys: carrier = carrier_2
                ReadFromMergeTree (default.flights)
                    Columns: carrier, delay
                ReadFromMergeTree (default.carriers)
                    Columns: carrier, name
              ReadFromMergeTree (default.flights)
                  Columns: origin, distance
        """,
    ),
    "a condition holds for all columns that are equal": (
        "SELECT count() FROM flights AS f, carriers AS c, flights AS g "
        "WHERE f.carrier = c.carrier AND g.origin = c.carrier AND g.origin IN ('UA', 'AA')",
        """
        Aggregating
            Keys: none
            Aggregates: count()
          Join (INNER)
              Keys: carrier = origin
            Join (INNER)
                Keys: carrier = carrier_2
              ReadFromMergeTree (default.flights)
                  Columns: carrier
                  Filter: carrier IN (UA, AA)
              ReadFromMergeTree (default.carriers)
                  Columns: carrier
                  Filter: carrier_2 IN (UA, AA)
            ReadFromMergeTree (default.flights)
                Columns: origin
                Filter: origin IN (UA, AA)
        """,
    ),
    "an equality in every branch of an OR is a key, and each branch filters its tables": (
        "SELECT count() FROM flights AS f, carriers AS c "
        "WHERE (f.carrier = c.carrier AND delay > 5 AND name = 'x') "
        "OR (f.carrier = c.carrier AND delay < 2 AND name LIKE 'y%')",
        """
        Aggregating
            Keys: none
            Aggregates: count()
          Filter
              Condition: ((delay > 5) AND (name = 'x')) OR ((delay < 2) AND (name LIKE 'y%'))
            Join (INNER)
                Keys: carrier = carrier_2
              ReadFromMergeTree (default.flights)
                  Columns: carrier, delay
                  Filter: (delay > 5) OR (delay < 2)
              ReadFromMergeTree (default.carriers)
                  Columns: carrier, name
                  Filter: (name = 'x') OR (name LIKE 'y%')
        """,
    ),
    "what branches of an OR share may be written with its sides swapped": (
        "SELECT count() FROM flights AS f, carriers AS c "
        "WHERE (f.carrier = c.carrier AND 5 < delay AND name = 'x') "
        "OR (name LIKE 'y%' AND delay > 5 AND c.carrier = f.carrier)",
        """
        Aggregating
            Keys: none
            Aggregates: count()
          Join (INNER)
              Keys: carrier = carrier_2
            ReadFromMergeTree (default.flights)
                Columns: carrier
                Filter: 5 < delay
            ReadFromMergeTree (default.carriers)
                Columns: carrier
                Filter: (name = 'x') OR (name LIKE 'y%')
        """,
    ),
    "an OR of which one branch is what all have in common is true": (
        "SELECT carrier FROM flights WHERE (delay > 5 AND origin = 'x') OR delay > 5",
        """
        ReadFromMergeTree (default.flights)
            Columns: carrier
            Filter: delay > 5
        """,
    ),
    "conditions and columns go into each branch of a union": (
        "SELECT c FROM (SELECT carrier AS c, delay AS d FROM flights "
        "UNION ALL SELECT name, 1 FROM carriers) WHERE c > 'B'",
        """
        Union
          ReadFromMergeTree (default.flights)
              Columns: carrier
              Filter: carrier > 'B'
          ReadFromMergeTree (default.carriers)
              Columns: name
              Filter: name > 'B'
        """,
    ),
    "unused aggregates and columns are not computed": (
        "SELECT n FROM (SELECT carrier, count() AS n, sum(delay) AS s FROM flights GROUP BY carrier)",
        """
        Expression
            Columns: count()
          Aggregating
              Keys: carrier
              Aggregates: count()
            ReadFromMergeTree (default.flights)
                Columns: carrier
        """,
    ),
    "projections merge": (
        "SELECT b + 1 AS c FROM (SELECT a + 1 AS b FROM (SELECT delay + 1 AS a FROM flights))",
        """
        Expression
            Columns: ((delay + 1) + 1) + 1 AS c
          ReadFromMergeTree (default.flights)
              Columns: delay
        """,
    ),
    "true conditions go": (
        "SELECT day FROM flights WHERE 1 AND 2 > 1",
        """
        ReadFromMergeTree (default.flights)
            Columns: day
        """,
    ),
    "count reads no column": (
        "SELECT count() FROM flights",
        """
        Aggregating
            Keys: none
            Aggregates: count()
          ReadFromMergeTree (default.flights)
              Columns: none
        """,
    ),
    "subqueries are optimized, too": (
        "SELECT day FROM flights WHERE delay = (SELECT max(delay) FROM flights WHERE 1)",
        """
        ReadFromMergeTree (default.flights)
            Columns: day
            Filter: delay = (subquery)
            Subquery 1:
              Aggregating
                  Keys: none
                  Aggregates: max(delay)
                ReadFromMergeTree (default.flights)
                    Columns: delay
        """,
    ),
}


@pytest.mark.parametrize(("query", "expected"), CASES.values(), ids=CASES.keys())
def test_rule(query: str, expected: str) -> None:
    shown = "\n".join(explain(optimize(bind(query))))
    shown = "\n".join(_without_numbers(shown).splitlines())
    assert shown == textwrap.dedent(expected).strip()


def _without_numbers(text: str) -> str:
    """Names that had to be made unique (`delay_2`) count as their own, but for joined keys."""
    import re

    return re.sub(r"\b(delay|count\(\)|max\(delay\))_\d+", r"\1", text)


def test_a_limit_bounds_the_sort() -> None:
    plan = optimize(bind("SELECT day FROM flights ORDER BY delay LIMIT 5 OFFSET 2"))
    (sort,) = [n for n in walk_nodes(plan.root) if isinstance(n, Sort)]
    assert sort.limit == 7


def test_with_ties_needs_every_row() -> None:
    plan = optimize(bind("SELECT day FROM flights ORDER BY day LIMIT 5 WITH TIES"))
    (sort,) = [n for n in walk_nodes(plan.root) if isinstance(n, Sort)]
    assert sort.limit is None


@pytest.mark.parametrize(
    ("query", "moves"),
    [
        ("SELECT upper(carrier) FROM flights ORDER BY delay LIMIT 5", True),
        ("SELECT upper(carrier) FROM flights ORDER BY delay LIMIT 5 WITH TIES", True),
        ("SELECT upper(carrier) AS u FROM flights ORDER BY u LIMIT 5", False),
        ("SELECT upper(carrier), rand() FROM flights ORDER BY delay LIMIT 5", True),
        ("SELECT rand() FROM flights ORDER BY delay LIMIT 5", False),
        ("SELECT upper(carrier) FROM flights ORDER BY delay", False),
        ("SELECT upper(carrier) FROM flights ORDER BY delay LIMIT 1001", False),
        ("SELECT upper(carrier), carrier FROM flights ORDER BY delay LIMIT 1001", True),
        ("SELECT upper(carrier) FROM flights ORDER BY delay LIMIT 1000000", False),
        ("SELECT upper(max(carrier)) FROM flights GROUP BY day ORDER BY day LIMIT 5", True),
    ],
)
def test_what_is_not_sorted_by_is_computed_after_the_limit(query: str, moves: bool) -> None:
    (limit,) = [n for n in walk_nodes(optimize(bind(query)).root) if isinstance(n, Limit | Sort)][
        :1
    ]
    computed = [e for n in walk_nodes(limit) if isinstance(n, Project) for _, e in n.expressions]
    below = [e for e in computed if isinstance(e, Call) and e.name in ("upper", "rand")]
    has_upper = "upper" in query
    assert any(e.name == "upper" for e in below) is (has_upper and not moves)
    assert any(e.name == "rand" for e in below) is ("rand()" in query)


def test_a_limit_bounds_each_branch_of_a_union() -> None:
    query = "SELECT * FROM (SELECT day FROM flights UNION ALL SELECT day FROM flights) LIMIT 3"
    limits = [n.count for n in walk_nodes(optimize(bind(query)).root) if isinstance(n, Limit)]
    assert limits == [3, 3, 3]


def test_a_limit_stops_conditions() -> None:
    query = "SELECT day FROM (SELECT day, delay FROM flights LIMIT 3) WHERE delay > 1"
    (scan,) = [n for n in walk_nodes(optimize(bind(query)).root) if isinstance(n, Scan)]
    assert scan.predicate is None


def test_false_reads_nothing() -> None:
    plan = optimize(bind("SELECT count() FROM flights WHERE 0"))
    assert not [n for n in walk_nodes(plan.root) if isinstance(n, Scan)]
    (values,) = [n for n in walk_nodes(plan.root) if isinstance(n, Values)]
    assert values.rows.num_rows == 0


def test_columns_of_conditions_are_not_offered() -> None:
    plan = optimize(bind("SELECT day FROM flights WHERE delay > 1"))
    assert isinstance(plan.root, Scan)
    assert plan.root.columns == (("day", "day"),)
    assert [(u, c) for u, c, _ in plan.root.predicate_columns] == [("delay", "delay")]


def test_rand_is_evaluated_where_it_was_written() -> None:
    plan = optimize(bind("SELECT r FROM (SELECT rand() AS r FROM flights) WHERE r > 5"))
    (scan,) = [n for n in walk_nodes(plan.root) if isinstance(n, Scan)]
    assert scan.predicate is None


@pytest.mark.parametrize("query", [query for query, _ in CASES.values()])
def test_every_rule_keeps_the_schema(query: str) -> None:
    node = bind(query).root
    for rule in RULES:
        assert rule(node).schema == node.schema


def test_optimizing_again_changes_nothing() -> None:
    for query, _ in CASES.values():
        once = optimize(bind(query))
        assert optimize(once) == once


PAIRED = [query for query, _ in CASES.values()] + [
    "SELECT name FROM system.tables WHERE database = 'default'",
    "SELECT number FROM numbers(1000000000000) WHERE number < 5",
    "SELECT delay FROM flights ORDER BY delay LIMIT 3",
    "SELECT length(concat(carrier, origin)), delay FROM flights ORDER BY delay, carrier LIMIT 3",
]


@pytest.mark.parametrize(
    "rule", sorted(set(RULES), key=RULES.index), ids=lambda rule: rule.__name__
)
def test_each_rule_changes_some_plan(
    rule: Callable[[Node], Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [optimize(bind(query)).root for query in PAIRED]
    assert whole == [optimize(bind(query)).root for query in PAIRED]
    monkeypatch.setattr(optimizer, "RULES", [one for one in RULES if one is not rule])
    without = [optimize(bind(query)).root for query in PAIRED]
    assert whole != without
