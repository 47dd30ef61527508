"""Estimates of the rows of joins by several keys, and of ranges."""

from __future__ import annotations

import itertools

import pytest

from olapdb.bind import BindScope, bind_query
from olapdb.model.schema import Table
from olapdb.optimize import optimize
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.statistics import TableStatistics
from olapdb.plan.nodes import Aggregate, Join, Scan
from olapdb.plan.tree import walk_nodes
from olapdb.sql.parser import parse_query
from olapdb.types import INT64
from tests.harness.fake_snapshot import FakeSnapshot, table

pytestmark = pytest.mark.feature("select")

LINES = table("lines", {"part": INT64, "supplier": INT64, "line": INT64}, order_by=["part"])
OFFERS = table("offers", {"part": INT64, "supplier": INT64}, order_by=["part"])
SUPPLIERS = table("suppliers", {"id": INT64, "nation": INT64}, order_by=["id"])
DEMANDS = table("demands", {"part": INT64, "nation": INT64}, order_by=["part"])
PRICES = table("prices", {"line": INT64, "price": INT64}, order_by=["line"])
STATISTICS = {
    "lines": TableStatistics(
        6_000_000, {"part": (1, 200_000, 0), "supplier": (1, 10_000, 0), "line": (1, 7, 0)}
    ),
    "offers": TableStatistics(800_000, {"part": (1, 200_000, 0), "supplier": (1, 10_000, 0)}),
    "suppliers": TableStatistics(10_000, {"id": (1, 10_000, 0), "nation": (0, 24, 0)}),
    "demands": TableStatistics(400_000, {"part": (1, 200_000, 0), "nation": (0, 24, 0)}),
}


def estimated(query: str) -> float:
    """Return the estimated rows of the top join of a query."""
    snapshot = FakeSnapshot(LINES, OFFERS, SUPPLIERS, DEMANDS)
    plan = optimize(bind_query(parse_query(query), BindScope(snapshot, "default")))
    join = next(node for node in walk_nodes(plan.root) if isinstance(node, Join))
    return Estimator(statistics).rows(join)


def statistics(table: Table) -> TableStatistics:
    return STATISTICS[table.name]


KEYS = ("lines.part = offers.part", "lines.supplier = offers.supplier")


@pytest.mark.parametrize("keys", [*itertools.permutations(KEYS)])
def test_the_smaller_table_has_the_combinations_of_the_keys(keys: tuple[str, ...]) -> None:
    query = f"SELECT count() FROM lines JOIN offers ON {' AND '.join(keys)}"
    assert estimated(query) == pytest.approx(6_000_000)


DEMANDED = ("suppliers.nation = demands.nation", "lines.part = demands.part")


@pytest.mark.parametrize("keys", [*itertools.permutations(DEMANDED)])
def test_keys_of_two_tables_have_the_combinations_of_the_other_side(keys: tuple[str, ...]) -> None:
    """The nations of 10,000 suppliers do not bound the combinations with the parts of the lines."""
    query = (
        "SELECT count() FROM lines JOIN suppliers ON lines.supplier = suppliers.id "
        f"JOIN demands ON {' AND '.join(keys)}"
    )
    assert estimated(query) == pytest.approx(6_000_000)


def test_conditions_on_one_side_leave_that_part_of_the_pairs() -> None:
    query = f"SELECT count() FROM lines JOIN offers ON {' AND '.join(KEYS)} WHERE lines.line = 3"
    assert estimated(query) == pytest.approx(6_000_000 / 7)


def test_few_combinations_count_as_such() -> None:
    query = (
        "SELECT count() FROM suppliers AS a JOIN suppliers AS b "
        "ON a.nation = b.nation AND a.nation % 2 = b.nation % 2"
    )
    assert estimated(query) == pytest.approx(10_000 * 10_000 / 25 / 3, rel=0.01)


def scanned(query: str) -> float:
    """Return the estimated rows of the scan of a query, whose conditions are pushed into it."""
    plan = optimize(bind_query(parse_query(query), BindScope(FakeSnapshot(PRICES), "default")))
    scan = next(node for node in walk_nodes(plan.root) if isinstance(node, Scan))
    return Estimator(lambda _: TableStatistics(90_000, {"line": (1, 100, 0)})).rows(scan)


def test_ends_of_an_interval_without_bounds_are_independent() -> None:
    """Two guesses of a third do not say that the ends do not meet."""
    assert scanned("SELECT sum(line) FROM prices WHERE price >= 5 AND price <= 7") == 10_000


def test_ends_of_an_interval_with_bounds_are_judged_together() -> None:
    query = "SELECT sum(price) FROM prices WHERE line > 40 AND line <= 60"
    assert scanned(query) == pytest.approx(18_000)


def test_ends_that_do_not_meet_leave_next_to_nothing() -> None:
    assert scanned("SELECT sum(price) FROM prices WHERE line < 20 AND line > 90") < 100


def grouped(query: str) -> float:
    """Return the estimated groups of the outer GROUP BY of a query."""
    snapshot = FakeSnapshot(LINES, OFFERS, SUPPLIERS, DEMANDS)
    plan = optimize(bind_query(parse_query(query), BindScope(snapshot, "default")))
    aggregate = next(node for node in walk_nodes(plan.root) if isinstance(node, Aggregate))
    return Estimator(statistics).rows(aggregate)


COUNTED = "SELECT part, count() AS c FROM lines GROUP BY part"


def test_groups_have_few_different_counts() -> None:
    """Groups of 1, 2, …, 3,463 rows have 6 million rows together."""
    query = f"SELECT c, count() FROM ({COUNTED}) GROUP BY c"
    assert estimated_below(grouped(query), 3_465)


@pytest.mark.parametrize(
    ("key", "values_max"), [("least(c, 50)", 51), ("c % 7", 7), ("part % 10", 19)]
)
def test_a_constant_bounds_the_values_of_a_call(key: str, values_max: int) -> None:
    assert estimated_below(
        grouped(f"SELECT {key} AS x, sum(c) FROM ({COUNTED}) GROUP BY x"), values_max
    )


def estimated_below(rows: float, rows_max: int) -> bool:
    """Return whether an estimate is at most so many rows, and more than one."""
    return 1 < rows <= rows_max
