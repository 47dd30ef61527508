"""The order of inner joins, by the sizes of their tables."""

from __future__ import annotations

import itertools

import pytest

from olapdb.bind import BindScope, bind_query
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import Table
from olapdb.optimize import optimize
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.order_joins import joined_tables, order_joins
from olapdb.optimize.statistics import TableStatistics, merged_statistics
from olapdb.plan.nodes import Join, Node, Plan, Scan
from olapdb.plan.tree import walk_nodes
from olapdb.sql.parser import parse_query
from olapdb.types import INT64, STRING
from tests.harness.fake_snapshot import FakeSnapshot, table

pytestmark = pytest.mark.feature("select")

LINES = table("lines", {"order": INT64, "part": INT64, "amount": INT64}, order_by=["order"])
ORDERS = table("orders", {"id": INT64, "customer": INT64, "day": INT64}, order_by=["id"])
CUSTOMERS = table("customers", {"id": INT64, "nation": INT64}, order_by=["id"])
NATIONS = table("nations", {"id": INT64, "name": STRING}, order_by=["id"])
STATISTICS = {
    "lines": TableStatistics(6_000_000, {"order": (1, 1_500_000, 0), "part": (1, 200_000, 0)}),
    "orders": TableStatistics(
        1_500_000, {"id": (1, 1_500_000, 0), "customer": (1, 150_000, 0), "day": (1, 2_400, 0)}
    ),
    "customers": TableStatistics(150_000, {"id": (1, 150_000, 0), "nation": (0, 24, 0)}),
    "nations": TableStatistics(25, {"id": (0, 24, 0), "name": ("ALGERIA", "VIETNAM", 0)}),
}
CONDITIONS = (
    "lines.order = orders.id AND orders.customer = customers.id "
    "AND customers.nation = nations.id AND nations.name = 'FRANCE'"
)


def plan_of(query: str) -> Plan:
    snapshot = FakeSnapshot(LINES, ORDERS, CUSTOMERS, NATIONS)
    return optimize(bind_query(parse_query(query), BindScope(snapshot, "default")))


def statistics(table: Table) -> TableStatistics:
    return STATISTICS[table.name]


def shape(node: Node) -> str:
    """Return the joins of a plan as text: `(streamed hashed)`."""
    if isinstance(node, Join):
        return f"({shape(node.left)} {shape(node.right)})"
    if isinstance(node, Scan):
        return node.table.name
    (child,) = node.children()
    return shape(child)


def ordered(query: str, limit: int = 10) -> str:
    return shape(order_joins(plan_of(query), Estimator(statistics), limit).root)


@pytest.mark.parametrize("limit", [10, 2])
@pytest.mark.parametrize("tables", list(itertools.permutations(STATISTICS)))
def test_the_order_written_does_not_matter(tables: tuple[str, ...], limit: int) -> None:
    query = f"SELECT sum(amount) FROM {', '.join(tables)} WHERE {CONDITIONS}"
    assert ordered(query, limit) == "(lines (orders (customers nations)))"


def test_the_smaller_side_is_hashed() -> None:
    query = "SELECT count() FROM customers JOIN orders ON customers.id = orders.customer"
    assert ordered(query) == "(orders customers)"


def test_a_condition_makes_a_side_small() -> None:
    query = (
        "SELECT count() FROM customers JOIN orders ON customers.id = orders.customer AND day < 20"
    )
    assert ordered(query) == "(customers orders)"


def test_outer_joins_keep_their_sides() -> None:
    query = "SELECT count() FROM customers LEFT JOIN orders ON customers.id = orders.customer"
    assert ordered(query) == "(customers orders)"
    assert joined_tables(plan_of(query)) == ()


EVERY_LINE = "SELECT sum(amount) FROM lines, orders WHERE lines.order = orders.id"


@pytest.mark.parametrize(
    ("exists", "nations"), [("EXISTS", "< 3"), ("NOT EXISTS", "< 22"), ("NOT EXISTS", "> 90")]
)
def test_partners_of_the_smaller_relation_are_looked_for_first(exists: str, nations: str) -> None:
    plan = plan_of(
        f"{EVERY_LINE} AND {exists} (SELECT 1 FROM customers WHERE customers.id = orders.customer"
        f" AND customers.nation {nations})"
    )
    changed = order_joins(plan, Estimator(statistics), 10)
    assert shape(plan.root) == "((lines orders) customers)"
    assert shape(changed.root) == "(lines (orders customers))"
    assert changed.root.schema == plan.root.schema


def test_partners_of_few_rows_are_looked_for_last() -> None:
    plan = plan_of(
        "SELECT count() FROM lines, nations WHERE lines.part = nations.id AND nations.name = 'FRANCE'"
        " AND EXISTS (SELECT 1 FROM orders WHERE orders.id = lines.order)"
    )
    assert shape(order_joins(plan, Estimator(statistics), 10).root) == "((lines nations) orders)"


def test_partners_of_rows_of_several_tables_are_looked_for_last() -> None:
    plan = plan_of(
        f"{EVERY_LINE} AND EXISTS (SELECT 1 FROM customers WHERE customers.id = orders.customer"
        " AND customers.nation = lines.part)"
    )
    assert shape(order_joins(plan, Estimator(statistics), 10).root) == "((lines orders) customers)"


def test_joins_of_subqueries_are_ordered() -> None:
    plan = plan_of(
        "SELECT count() FROM lines WHERE order IN "
        "(SELECT orders.id FROM customers, orders WHERE customers.id = orders.customer)"
    )
    root = order_joins(plan, Estimator(statistics), 10).root
    (scan,) = [n for n in walk_nodes(root) if isinstance(n, Scan)]
    assert shape(scan.predicate.plan) == "(orders customers)"  # type: ignore[union-attr]


def test_the_columns_stay_as_they_were() -> None:
    plan = plan_of(
        "SELECT * FROM nations, customers, orders WHERE nations.id = customers.nation "
        "AND orders.customer = customers.id"
    )
    changed = order_joins(plan, Estimator(statistics), 10)
    assert changed.root != plan.root
    assert changed.root.schema == plan.root.schema


def test_limit_zero_keeps_the_plan() -> None:
    plan = plan_of(f"SELECT count() FROM nations, customers, orders, lines WHERE {CONDITIONS}")
    assert order_joins(plan, Estimator(statistics), 0) is plan


def test_few_rows_keep_the_plan() -> None:
    plan = plan_of(f"SELECT count() FROM nations, customers, orders, lines WHERE {CONDITIONS}")
    assert order_joins(plan, Estimator(lambda _: TableStatistics(1_000)), 10) is plan


def test_statistics_of_parts_are_merged() -> None:
    def part(number: int, rows: int, **bounds: tuple[object, object, int]) -> Part:
        return Part(str(number), "t", "all", (), rows, 1, BlockRange(number, number), bounds=bounds)

    parts = [
        part(1, 10, a=(1, 5, 2), b=("x", "y", 0)),
        part(2, 0),
        part(3, 20, a=(None, None, 20), b=("a", "b", 0)),
        part(4, 5, a=(-3, 2, 0)),
    ]
    assert merged_statistics(parts) == TableStatistics(35, {"a": (-3, 5, 22)})
    assert merged_statistics([]) == TableStatistics(0)
