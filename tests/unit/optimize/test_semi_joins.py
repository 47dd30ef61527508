"""Joins of which only the presence of a partner counts, and outer joins that conditions narrow: by the plan that
EXPLAIN shows, and by the rows with the rules on and off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.config import tuning

pytestmark = pytest.mark.feature("select")

OFF = (
    "use_semi_joins = 0, query_plan_convert_outer_join_to_inner_join = 0,"
    " query_plan_propagate_predicate_across_join = 0"
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE l (k Int64, w Int32, n Nullable(Int32)) ORDER BY k")
        opened.execute("CREATE TABLE r (k Int64, w Int32, n Nullable(Int32)) ORDER BY k")
        opened.execute(
            "INSERT INTO l SELECT number % 500, number % 7, if(number % 5 = 0, NULL, number % 11) FROM numbers(3000)"
        )
        opened.execute(
            "INSERT INTO r SELECT number % 300 * 2, number % 3, if(number % 4 = 0, NULL, number % 6)"
            " FROM numbers(2000)"
        )
        yield opened


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOIN_ORDER_ROWS_MIN", "GROUPED_PARTNERS_ROWS_MIN"):
        monkeypatch.setattr(tuning, name, 0)


def joins(connection: Any, query: str) -> list[str]:
    """Return the joins that EXPLAIN shows, outermost first, and the groupings beside them."""
    lines = [line.strip() for (line,) in connection.execute(f"EXPLAIN {query}").fetchall()]
    return [line for line in lines if line.startswith("Join ") or line == "Aggregating"]


NARROWED = {
    "no partner, by a key": (
        "SELECT l.k, r.w FROM l LEFT JOIN r ON l.k = r.k WHERE r.k IS NULL",
        ["Join (ANTI LEFT)"],
    ),
    "no partner, by a column that is never NULL": (
        "SELECT l.k, r.n FROM l LEFT JOIN r ON l.k = r.k AND l.w < r.w WHERE r.w IS NULL AND l.w > 2",
        ["Join (ANTI LEFT)"],
    ),
    "a NULL of the partner's own": (
        "SELECT l.k, r.n FROM l LEFT JOIN r ON l.k = r.k WHERE r.n IS NULL",
        ["Join (LEFT)"],
    ),
    "a comparison": (
        "SELECT l.k, r.n FROM l LEFT JOIN r ON l.k = r.k WHERE r.n > 1",
        ["Join (INNER)"],
    ),
    "one branch holds for NULL": (
        "SELECT l.k, r.n FROM l LEFT JOIN r ON l.k = r.k WHERE r.n > 1 OR l.w = 3",
        ["Join (LEFT)"],
    ),
    "both branches need the partner": (
        "SELECT l.k, r.n FROM l LEFT JOIN r ON l.k = r.k WHERE r.n > 1 OR r.w = 1",
        ["Join (INNER)"],
    ),
    "the key of a join above": (
        "SELECT count(), sum(s.w) FROM l LEFT JOIN r ON l.k = r.k JOIN l AS s ON r.n = s.k",
        ["Join (INNER)", "Join (INNER)"],
    ),
    "the left side of FULL": (
        "SELECT l.k, r.k, r.n FROM l FULL JOIN r ON l.k = r.k WHERE l.w > 2",
        ["Join (LEFT)"],
    ),
    "both sides of FULL": (
        "SELECT l.k, r.k, r.n FROM l FULL JOIN r ON l.k = r.k WHERE l.w > 2 AND r.w < 2",
        ["Join (INNER)"],
    ),
    "RIGHT": ("SELECT l.w, r.k FROM l RIGHT JOIN r ON l.k = r.k WHERE l.w = r.w", ["Join (INNER)"]),
}


@pytest.mark.parametrize(("query", "expected"), NARROWED.values(), ids=NARROWED)
def test_conditions_narrow_outer_joins(connection: Any, query: str, expected: list[str]) -> None:
    nulls = f"{query} SETTINGS join_use_nulls = 1"
    assert [line for line in joins(connection, nulls) if line != "Aggregating"] == expected
    assert same_rows(connection, nulls)
    assert same_rows(connection, f"{query} SETTINGS join_use_nulls = 0")


DEFAULTS = {
    "a default that meets the condition": ("r.w < 2", "Join (LEFT)"),
    "a default that does not": ("r.w > 0", "Join (INNER)"),
    "NULL of a key that cannot be NULL": ("r.k IS NULL", "Join (LEFT)"),
    "not the default": ("r.k <> 0", "Join (INNER)"),
}


@pytest.mark.parametrize(("condition", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_without_join_use_nulls_missing_columns_have_defaults(
    connection: Any, condition: str, expected: str
) -> None:
    query = f"SELECT l.k, r.w FROM l LEFT JOIN r ON l.k = r.k WHERE {condition} SETTINGS join_use_nulls = 0"
    assert joins(connection, query) in ([expected], [])
    assert same_rows(connection, query)


SEMI = {
    "IN of a join": (
        "SELECT count() FROM l WHERE k IN (SELECT a.k FROM l AS a JOIN r ON a.k = r.k)",
        ["Aggregating", "Join (SEMI LEFT)"],
    ),
    "DISTINCT": ("SELECT DISTINCT l.w FROM l JOIN r ON l.k = r.k", ["Join (SEMI LEFT)"]),
    "groups without sums": (
        "SELECT l.k, max(l.w) FROM l JOIN r ON l.k = r.k GROUP BY l.k",
        ["Aggregating", "Join (SEMI LEFT)"],
    ),
    "sums count each pair": (
        "SELECT l.k, sum(l.w) FROM l JOIN r ON l.k = r.k GROUP BY l.k",
        ["Aggregating", "Join (INNER)"],
    ),
    "the columns of both sides are read": (
        "SELECT DISTINCT l.w, r.n FROM l JOIN r ON l.k = r.k",
        ["Join (INNER)"],
    ),
    "another value of the same key, by the least and the greatest": (
        "SELECT count() FROM l WHERE k IN (SELECT a.k FROM l AS a JOIN l AS b ON a.k = b.k WHERE a.w <> b.w)",
        ["Aggregating", "Join (SEMI LEFT)", "Aggregating"],
    ),
    "EXISTS of a greater value": (
        "SELECT count() FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.n > l.n)",
        ["Aggregating", "Join (SEMI LEFT)", "Aggregating"],
    ),
    "NOT EXISTS of a smaller value": (
        "SELECT count() FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w < l.w)",
        ["Aggregating", "Join (ANTI LEFT)", "Aggregating"],
    ),
}


@pytest.mark.parametrize(("query", "expected"), SEMI.values(), ids=SEMI)
def test_joins_of_which_presence_counts(connection: Any, query: str, expected: list[str]) -> None:
    assert joins(connection, query) == expected
    assert same_rows(connection, query)


def test_a_subplan_that_another_place_needs_whole_is_shared_as_it_is(connection: Any) -> None:
    query = (
        "WITH p AS (SELECT l.k AS k, l.w AS w FROM l JOIN r ON l.k = r.k) "
        "SELECT sum(k), sum(w) FROM p UNION ALL SELECT DISTINCT k, w FROM p"
    )
    shown = [line.strip() for (line,) in connection.execute(f"EXPLAIN {query}").fetchall()]
    assert sum(line.startswith("Shared (1)") for line in shown) == 2
    assert same_rows(connection, query)


TRANSFERRED = {
    "the right side of LEFT": (
        "SELECT l.k, s.w FROM l LEFT JOIN (SELECT k, sum(w) AS w FROM r GROUP BY k) AS s ON l.k = s.k"
        " WHERE l.k = 4",
        2,
    ),
    "the left side of RIGHT": (
        "SELECT l.w, r.k FROM l RIGHT JOIN r ON l.k = r.k WHERE r.k > 100",
        2,
    ),
    "the right side of ANTI": ("SELECT l.k FROM l LEFT ANTI JOIN r ON l.k = r.k WHERE l.k < 50", 2),
    "two joins in a row": (
        "SELECT l.k, s.w, t.w FROM l LEFT JOIN r AS s ON l.k = s.k LEFT JOIN r AS t ON l.k = t.k"
        " WHERE l.k IN (2, 4, 6)",
        3,
    ),
    "a condition on another column": (
        "SELECT l.k, r.w FROM l LEFT JOIN r ON l.k = r.k WHERE l.w = 4",
        1,
    ),
    "FULL keeps all rows": (
        "SELECT l.k, r.k FROM (SELECT k FROM l WHERE k < 10) AS l FULL JOIN r ON l.k = r.k",
        1,
    ),
}


@pytest.mark.parametrize(("query", "filters"), TRANSFERRED.values(), ids=TRANSFERRED)
def test_conditions_on_keys_filter_the_other_side(
    connection: Any, query: str, filters: int
) -> None:
    lines = [line.strip() for (line,) in connection.execute(f"EXPLAIN {query}").fetchall()]
    assert sum(line.startswith("Filter: ") for line in lines) == filters
    assert same_rows(connection, query)


def same_rows(connection: Any, query: str) -> bool:
    """Return whether a query has the same rows, of which there are some, with the rules off."""
    comma = "," if "SETTINGS" in query else " SETTINGS"
    rows = [
        sorted(map(str, connection.execute(f"{query}{comma} {settings}").fetchall()))
        for settings in ("max_threads = 2", OFF, "optimizer = 0")
    ]
    return rows[0] == rows[1] == rows[2]
