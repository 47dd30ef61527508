"""Aggregates below joins: the plans that EXPLAIN shows, and the rows with the rule on and off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.config import tuning

pytestmark = pytest.mark.feature("select", "aggregates")

OFF = "push_aggregates_below_joins = 0"


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with olapdb.connect() as opened:
        opened.execute(
            "CREATE TABLE lines (part Int32, shop Nullable(Int32), price Decimal(7, 2), weight Float64,"
            " code LowCardinality(String), amount Nullable(Int32), tags Array(String)) ORDER BY part"
        )
        opened.execute(
            "INSERT INTO lines SELECT number % 40, if(number % 9 = 0, NULL, number % 6), number % 1000 / 10,"
            " number % 7 / 3, concat('c', toString(number % 5)), if(number % 4 = 0, NULL, number % 100),"
            " [toString(number % 3)] FROM numbers(4000)"
        )
        # Some parts have several rows, others none.
        opened.execute("CREATE TABLE parts (id Int32, name String, size Int32) ORDER BY id")
        opened.execute(
            "INSERT INTO parts SELECT number % 30, concat('p', toString(number % 7)), number % 11"
            " FROM numbers(45)"
        )
        opened.execute("CREATE TABLE shops (id Int32, city String) ORDER BY id")
        opened.execute(
            "INSERT INTO shops SELECT number, ['x', 'y'][number % 2 + 1] FROM numbers(5)"
        )
        yield opened


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOIN_ORDER_ROWS_MIN", "PUSHED_AGGREGATE_ROWS_MIN"):
        monkeypatch.setattr(tuning, name, 0)
    monkeypatch.setattr(tuning, "PUSHED_AGGREGATE_COST_PERCENT_MAX", 1 << 40)


def nodes(connection: Any, query: str) -> list[str]:
    """Return the groupings, joins and tables of a plan, each further in than the one that it is an input of."""
    kinds = {"Aggregating": "group", "Join": "join", "ReadFromMergeTree": "read"}
    shown = []
    for (line,) in connection.execute(f"EXPLAIN {query}").fetchall():
        kind = kinds.get(line.split("(")[0].strip())
        if kind == "read":
            shown.append(line.split(".")[1].rstrip(")"))
        elif kind is not None:
            shown.append(kind)
    return shown


def same_rows(connection: Any, query: str) -> bool:
    """Return whether a query, which has rows, has the same with the rule off and without the optimizer."""
    comma = "," if "SETTINGS" in query else " SETTINGS"
    rows = [
        sorted(map(repr, connection.execute(f"{query}{comma} {settings}").fetchall()))
        for settings in ("max_threads = 2", OFF, "optimizer = 0")
    ]
    return bool(rows[0]) and rows[0] == rows[1] == rows[2]


PUSHED = {
    "sums of a column of one side": "SELECT name, sum(price), count() FROM lines JOIN parts ON part = id GROUP BY name",
    "least and greatest values": "SELECT name, sum(price), min(code), max(amount) FROM lines JOIN parts ON part = id"
    " GROUP BY name",
    "NULL among the values": "SELECT name, sum(amount), count(amount) FROM lines JOIN parts ON part = id GROUP BY name",
    "the greatest value of the other side": "SELECT code, sum(price), max(size) FROM lines JOIN parts ON part = id"
    " GROUP BY code",
    "distinct values of the other side": "SELECT code, sum(price), count(DISTINCT name) FROM lines JOIN parts"
    " ON part = id GROUP BY code",
    "no keys": "SELECT count(), sum(price * 2) FROM lines JOIN parts ON part = id",
    "no keys, no rows": "SELECT count(), sum(price) FROM lines JOIN parts ON part = id + 1000",
    "a computed key": "SELECT upper(name) AS n, sum(price) FROM lines JOIN parts ON part = id GROUP BY n",
    "a condition on both sides": "SELECT name, sum(price) FROM lines JOIN parts ON part = id AND amount > size"
    " GROUP BY name",
    "two joins": "SELECT name, city, sum(price) FROM lines JOIN parts ON part = parts.id JOIN shops ON shop = shops.id"
    " GROUP BY name, city",
    "a left join": "SELECT name, sum(price) FROM lines LEFT JOIN parts ON part = id JOIN shops ON shop = shops.id"
    " GROUP BY name SETTINGS join_use_nulls = 1",
    "a semi join": "SELECT code, sum(price) FROM lines WHERE part IN (SELECT parts.id FROM parts JOIN shops"
    " ON parts.size = shops.id) AND EXISTS (SELECT 1 FROM shops WHERE shops.id = shop) GROUP BY code",
    "pairs of all rows": "SELECT city, count() FROM lines CROSS JOIN shops GROUP BY city",
    "a subquery": "SELECT sum(s) FROM (SELECT name, sum(price) AS s FROM lines JOIN parts ON part = id GROUP BY name)",
    "a subquery in a condition": "SELECT count() FROM shops WHERE id < (SELECT sum(amount) FROM lines JOIN parts ON"
    " part = id)",
}


@pytest.mark.parametrize("query", PUSHED.values(), ids=PUSHED)
def test_rows_are_grouped_before_they_are_joined(connection: Any, query: str) -> None:
    comma = "," if "SETTINGS" in query else " SETTINGS"
    before = nodes(connection, f"{query}{comma} {OFF}").count("group")
    assert nodes(connection, query).count("group") == before + 1
    assert same_rows(connection, query)


def test_the_larger_table_is_grouped(connection: Any) -> None:
    query = "SELECT name, sum(price) FROM lines JOIN parts ON part = id GROUP BY name"
    assert nodes(connection, query) == ["group", "join", "group", "lines", "parts"]


STAYING = {
    "values of both sides": "SELECT name, sum(price * size) FROM lines JOIN parts ON part = id GROUP BY name",
    "sums of both sides": "SELECT name, sum(price), sum(size) FROM lines JOIN parts ON part = id GROUP BY name",
    "floats, which round": "SELECT name, sum(weight) FROM lines JOIN parts ON part = id GROUP BY name",
    "keys that are floats": "SELECT weight, sum(price) FROM lines JOIN parts ON part = id GROUP BY weight",
    "keys that are arrays": "SELECT tags, sum(price) FROM lines JOIN parts ON part = id GROUP BY tags",
    "an aggregate of other states": "SELECT name, quantile(price), count() FROM lines JOIN parts ON part = id"
    " GROUP BY name",
    "distinct values of the same side": "SELECT name, sum(price), uniqExact(amount) FROM lines JOIN parts ON part = id"
    " GROUP BY name",
    "no sum": "SELECT name, max(price) FROM lines JOIN parts ON part = id GROUP BY name",
    "several sets of keys": "SELECT name, size, sum(price) FROM lines JOIN parts ON part = id GROUP BY CUBE(name, size)",
    "a side whose rows may be missing": "SELECT name, sum(price) FROM parts JOIN shops ON parts.size = shops.id"
    " LEFT JOIN lines ON part = parts.id GROUP BY name",
    "one partner of several": "SELECT name, sum(price) FROM lines JOIN shops ON shop = shops.id"
    " ANY JOIN parts ON part = parts.id GROUP BY name",
}


@pytest.mark.parametrize("query", STAYING.values(), ids=STAYING)
def test_rows_are_joined_first(connection: Any, query: str) -> None:
    assert nodes(connection, query) == nodes(connection, f"{query} SETTINGS {OFF}")
    assert same_rows(connection, query)


@pytest.mark.parametrize("side", ["lines", "parts"])
def test_a_column_may_have_the_name_of_a_partial_sum(side: str) -> None:
    with olapdb.connect() as opened:
        named = "`__partial_sum(price)` Int32"
        columns = {"lines": "part Int32, price Int32", "parts": "id Int32, name String"}
        columns[side] += f", {named}"
        for table, definition in columns.items():
            opened.execute(f"CREATE TABLE {table} ({definition}) ORDER BY tuple()")
        more = {table: ", number % 2" if table == side else "" for table in columns}
        opened.execute(
            f"INSERT INTO lines SELECT number % 5, number{more['lines']} FROM numbers(100)"
        )
        opened.execute(f"INSERT INTO parts SELECT number, 'p'{more['parts']} FROM numbers(5)")
        query = (
            "SELECT name, `__partial_sum(price)`, sum(price) FROM lines JOIN parts ON part = id"
            " GROUP BY name, `__partial_sum(price)`"
        )
        assert nodes(opened, query).count("group") == 2
        assert same_rows(opened, query)


def test_random_numbers_are_drawn_for_each_pair(connection: Any) -> None:
    query = "SELECT name, sum(price) FROM lines JOIN parts ON part = id WHERE rand() % 2 = size % 2 GROUP BY name"
    assert nodes(connection, query).count("group") == 1


@pytest.mark.parametrize(("keys", "groups"), [("name", 2), ("name, price, amount", 1)])
def test_keys_with_nearly_as_many_values_as_rows_do_not_pay(
    connection: Any, keys: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "PUSHED_AGGREGATE_COST_PERCENT_MAX", 70)
    query = f"SELECT {keys}, sum(price) FROM lines JOIN parts ON part = id GROUP BY {keys}"
    assert nodes(connection, query).count("group") == groups


def test_small_inputs_keep_their_plan(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PUSHED_AGGREGATE_ROWS_MIN", 1 << 30)
    query = "SELECT name, sum(price) FROM lines JOIN parts ON part = id GROUP BY name SETTINGS max_threads = 1"
    assert nodes(connection, query).count("group") == 1


def test_the_limit_of_groups_counts_those_of_the_query(connection: Any) -> None:
    query = (
        "SELECT name, sum(price) FROM lines JOIN parts ON part = id GROUP BY name"
        " SETTINGS max_rows_to_group_by = 10"
    )
    assert len(connection.execute(query).fetchall()) == 7
