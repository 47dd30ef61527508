"""Resolution of names: columns, aliases, tables, views, WITH."""

from __future__ import annotations

import pytest

from olapdb import errors
from olapdb.plan.nodes import Aggregate, Filter, Project, Scan, SystemScan
from olapdb.plan.tree import walk_nodes
from tests.unit.bind.warehouse import COMPUTED, FLIGHTS, TARGET, VIEW, bind

pytestmark = pytest.mark.feature("select", "sql")


def scans(query: str) -> list[Scan]:
    return [n for n in walk_nodes(bind(query).root) if isinstance(n, Scan)]


def read(query: str) -> list[list[str]]:
    return [[name for _, name in scan.columns] for scan in scans(query)]


def types(query: str) -> list[str]:
    return [str(t) for t in bind(query).types]


def test_scan_reads_what_is_used_in_table_order() -> None:
    assert read("SELECT delay FROM flights WHERE day > '2013-01-01'") == [["day", "delay"]]


def test_count_reads_no_column() -> None:
    assert read("SELECT count() FROM flights") == [[]]


def test_alias_wins_over_column_everywhere_but_in_itself() -> None:
    plan = bind("SELECT delay + 1 AS delay FROM flights WHERE delay > 10 ORDER BY delay")
    filters = [n for n in walk_nodes(plan.root) if isinstance(n, Filter)]
    assert "plus" in str(filters[0].predicate)
    assert types("SELECT delay + 1 AS delay FROM flights") == ["Int64"]


def test_prefer_column_name_to_alias() -> None:
    plan = bind(
        "SELECT delay + 1 AS delay FROM flights WHERE delay > 10", prefer_column_name_to_alias=1
    )
    filters = [n for n in walk_nodes(plan.root) if isinstance(n, Filter)]
    assert "plus" not in str(filters[0].predicate)


def test_alias_that_is_only_itself() -> None:
    with pytest.raises(errors.UnknownIdentifier):
        bind("SELECT nothing + 1 AS nothing FROM flights")


def test_materialized_and_alias_columns_are_not_in_star() -> None:
    assert bind("SELECT * FROM computed").names == ("t",)
    assert bind("SELECT t, day, next, after_next FROM computed").names == (
        "t",
        "day",
        "next",
        "after_next",
    )


def test_alias_column_is_computed_from_stored_ones() -> None:
    assert read("SELECT after_next FROM computed") == [["day"]]
    assert types("SELECT after_next FROM computed") == ["Date"]


def test_alias_column_of_the_outer_side_is_computed_below_the_join() -> None:
    plan = bind("SELECT flights.day, next FROM flights LEFT JOIN computed ON flights.day = next")
    projects = [n for n in walk_nodes(plan.root) if isinstance(n, Project)]
    assert any(isinstance(p.child, Scan) and p.child.table is COMPUTED for p in projects)


def test_ephemeral_column_cannot_be_read() -> None:
    with pytest.raises(errors.NoSuchColumn, match="EPHEMERAL"):
        bind("SELECT input FROM computed")


def test_virtual_columns_are_read_when_named() -> None:
    assert read("SELECT _part, _block_number FROM flights") == [["_part", "_block_number"]]
    assert "_part" not in bind("SELECT * FROM flights").names


def test_view_is_expanded_with_its_own_names() -> None:
    plan = bind("WITH flights AS (SELECT 1 AS carrier) SELECT minutes FROM late")
    assert [n.table for n in walk_nodes(plan.root) if isinstance(n, Scan)] == [FLIGHTS]
    assert plan.names == ("minutes",)
    assert dict(plan.tables) == {VIEW.id: VIEW.revision, FLIGHTS.id: FLIGHTS.revision}


def test_materialized_view_reads_its_target_under_its_own_columns() -> None:
    plan = bind("SELECT * FROM counts")
    assert plan.names == ("carrier", "n")
    assert [s.table for s in scans("SELECT * FROM counts")] == [TARGET]
    assert {i for i, _ in plan.tables} == {"mv", TARGET.id}


def test_final_passes_through_a_materialized_view() -> None:
    assert [s.final for s in scans("SELECT n FROM counts FINAL")] == [True]


def test_setting_final_is_for_merging_engines_only() -> None:
    plan = bind("SELECT n, delay FROM target, flights", final=1)
    found = {n.table.name: n.final for n in walk_nodes(plan.root) if isinstance(n, Scan)}
    assert found == {"target": True, "flights": False}


def test_prewhere_of_a_final_table_comes_before_combining() -> None:
    (scan,) = scans("SELECT n FROM target FINAL PREWHERE carrier = 'UA' WHERE n > 1")
    assert scan.prewhere is not None
    assert scan.predicate is None


def test_other_database() -> None:
    assert bind("SELECT * FROM other.flights").names == ("id",)


def test_system_table_reads_what_is_used() -> None:
    plan = bind("SELECT name FROM system.tables WHERE database = 'default'")
    (scan,) = [n for n in walk_nodes(plan.root) if isinstance(n, SystemScan)]
    assert [name for _, name in scan.columns] == ["database", "name"]


@pytest.mark.parametrize(
    ("query", "error", "hint"),
    [
        ("SELECT * FROM flight", errors.UnknownTable, "flights"),
        ("SELECT * FROM othr.flights", errors.UnknownDatabase, "other"),
        ("SELECT * FROM system.tabls", errors.UnknownTable, "system.tables"),
        ("SELECT yesterday FROM flights", errors.UnknownIdentifier, "yesterday()"),
        ("SELECT delayy FROM flights", errors.UnknownIdentifier, "delay"),
        ("SELECT f.delayy FROM flights AS f", errors.UnknownIdentifier, "delay"),
        ("SELECT x.* FROM flights AS f", errors.UnknownIdentifier, ""),
        ("SELECT * EXCEPT (dely) FROM flights", errors.NoSuchColumn, "delay"),
        ("SELECT COLUMNS('^zz') FROM flights", errors.EmptyListOfColumnsQueried, ""),
        ("SELECT * FROM numberz(3)", errors.UnknownFunction, "numbers"),
        ("SELECT uniqq(carrier) FROM flights", errors.UnknownFunction, "uniq."),
        ("SELECT TOSTARTOFHOURS(now())", errors.UnknownFunction, "toStartOfHour"),
    ],
)
def test_unknown_names_say_what_was_meant(query: str, error: type[errors.Error], hint: str) -> None:
    with pytest.raises(error) as raised:
        bind(query)
    assert hint in raised.value.hint
    assert raised.value.position is not None


def test_position_is_that_of_the_name() -> None:
    with pytest.raises(errors.UnknownIdentifier) as raised:
        bind("SELECT carrier,\n  nosuch FROM flights")
    assert (raised.value.position.line, raised.value.position.column) == (2, 3)


def test_ambiguity_is_an_error_where_wanted() -> None:
    query = "SELECT carrier FROM flights JOIN carriers ON flights.carrier = carriers.carrier"
    assert bind(query).names == ("carrier",)
    with pytest.raises(errors.AmbiguousIdentifier, match="flights, carriers"):
        bind(query, single_join_prefer_left_table=0)


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("SELECT 1 FROM (SELECT 1 SETTINGS max_memory_usage = 1)", "max_memory_usage"),
        (
            "SELECT (SELECT any(x) FROM (SELECT max(delay) AS x FROM flights WHERE carrier = c.name))"
            " FROM carriers AS c",
            "without GROUP BY inside",
        ),
    ],
)
def test_what_is_not_there_yet_is_named(query: str, clause: str) -> None:
    with pytest.raises(errors.NotSupportedError, match=clause) as raised:
        bind(query)
    assert raised.value.position is not None


def test_group_by_nothing_is_one_group() -> None:
    plan = bind("SELECT count() FROM flights GROUP BY ()")
    (node,) = [n for n in walk_nodes(plan.root) if isinstance(n, Aggregate)]
    assert (node.keys, node.empty_without_rows) == ((), False)


def test_group_by_constants_has_no_group_without_rows() -> None:
    plan = bind("SELECT count(), 'x' AS c FROM flights GROUP BY c")
    (node,) = [n for n in walk_nodes(plan.root) if isinstance(n, Aggregate)]
    assert (node.keys, node.empty_without_rows) == ((), True)


def test_equal_aggregates_are_computed_once_and_different_parameters_are_not() -> None:
    plan = bind(
        "SELECT sum(delay) AS s, s / count(), quantile(0.5)(delay), quantile(0.9)(delay) "
        "FROM flights HAVING sum(delay) > 0"
    )
    (node,) = [n for n in walk_nodes(plan.root) if isinstance(n, Aggregate)]
    names = [call.name for _, call in node.aggregates]
    assert names == ["sum", "count", "quantile(0.5)", "quantile(0.9)"]
