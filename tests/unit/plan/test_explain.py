"""EXPLAIN's tree."""

from __future__ import annotations

import textwrap

import pytest

from olapdb.plan.explain import explain
from olapdb.plan.nodes import Node, Scan
from tests.unit.bind.warehouse import bind

pytestmark = pytest.mark.feature("select", "introspection")


def lines(text: str) -> list[str]:
    return textwrap.dedent(text).strip().splitlines()


def test_every_clause_is_shown() -> None:
    plan = bind(
        "SELECT DISTINCT carrier, if(delay > 10, 'late', NULL) AS l FROM flights "
        "WHERE carrier IN ('A', 'B', 'C', 'D', 'E', 'F', 'G') AND NOT day = '2013-01-01' "
        "ORDER BY carrier DESC NULLS FIRST LIMIT 2 BY l LIMIT 3 OFFSET 4"
    )
    assert explain(plan) == lines(
        """
        Limit
            Limit: 3
            Offset: 4
          LimitBy
              Limit: 2 BY l
            Sorting
                Sort: carrier DESC NULLS FIRST
              Distinct
                  Columns: all
                Expression
                    Columns: carrier, if(delay > 10, 'late', NULL) AS l
                  Filter
                      Condition: carrier IN (A, B, C, D, E, … 2 more) AND NOT (day = '2013-01-01')
                    ReadFromMergeTree (default.flights)
                        Columns: day, carrier, delay
        """
    )


def test_annotations_come_below_their_node() -> None:
    def annotate(node: Node) -> list[str]:
        return ["Parts: 1/2"] if isinstance(node, Scan) else []

    shown = explain(bind("SELECT day FROM flights"), annotate)
    assert shown[-1] == "      Parts: 1/2"


def test_sets_and_generators() -> None:
    shown = explain(bind("SELECT number FROM numbers(3) EXCEPT SELECT 1"))
    assert shown[0] == "IntersectOrExcept (EXCEPT)"
    assert any("From 0, step 1, 3 rows" in line for line in shown)
