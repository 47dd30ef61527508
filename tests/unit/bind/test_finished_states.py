"""-Merge over a view whose column is a -Merge itself reads the states behind the view."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import IllegalTypeOfArgument

pytestmark = pytest.mark.feature("aggregates")


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    connection = olapdb.connect()
    for statement in (
        "create table s (k String, day Date, user UInt32, v Int32) engine = MergeTree order by k",
        "create table t (k String, day Date, users AggregateFunction(uniq, UInt32), "
        "mean AggregateFunction(avg, Int32), q AggregateFunction(quantile(0.9), Int32), "
        "n SimpleAggregateFunction(sum, UInt64)) engine = AggregatingMergeTree order by (k, day)",
        "create materialized view mv to t as select k, day, uniqState(user) as users, "
        "avgState(v) as mean, quantileState(0.9)(v) as q, count() as n from s group by k, day",
        "create view r as select k, day, uniqMerge(states.users) as users, "
        "avgMerge(states.mean) as mean, quantileMerge(0.9)(states.q) as q, sum(states.n) as n, "
        "uniqMerge(states.users) + 1 as more from t as states group by k, day",
        "insert into s select toString(number % 3), toDate('2024-01-01') + number % 5, "
        "number % 7, number % 11 - 5 from numbers(1000)",
        "insert into s select toString(number % 2), toDate('2024-01-01') + number % 9, "
        "number % 13, number % 17 from numbers(500)",
    ):
        connection.execute(statement)
    return connection


FROM_SOURCE = "select k, uniq(user), avg(v), quantile(0.9)(v), count() from s group by k order by k"
MERGED = "k, uniqMerge(users) as u, avgMerge(mean) as m, quantileMerge(0.9)(q) as p, sum(n) as c"


@pytest.mark.parametrize(
    "query",
    [
        f"select {MERGED} from r group by k order by k",
        f"with x as (select * from r), y as (select * from x) select {MERGED} from y group by k "
        "order by k",
        f"select {MERGED} from (select k, users, mean, q, n from r) as z group by k order by k",
        "select k, uniqMerge(z.visitors), avgMerge(mean), quantileMerge(0.9)(q), sum(n) from "
        "(select k, users as visitors, mean, q, n from r where n > 0) as z group by k order by k",
        "select k, uniqMerge(users) as users, avgMerge(mean) as mean, quantileMerge(0.9)(q) as q, "
        "sum(n) as n from default.r as a group by k order by k",
    ],
)
def test_it_is_the_answer_of_the_source(connection: olapdb.Connection, query: str) -> None:
    assert connection.execute(query).fetchall() == connection.execute(FROM_SOURCE).fetchall()


def test_finished_values_and_states_side_by_side(connection: olapdb.Connection) -> None:
    rows = connection.execute(
        "select max(users), uniqMerge(users), uniqMerge(users), "
        "finalizeAggregation(uniqMergeState(users)), "
        "uniqMergeIf(users, k = '1') from r where day < '2024-01-04'"
    ).fetchall()
    expected = connection.execute(
        "select (select max(u) from (select uniq(user) as u from s where day < '2024-01-04' "
        "group by k, day)), uniq(user), uniq(user), uniq(user), uniqIf(user, k = '1') "
        "from s where day < '2024-01-04'"
    ).fetchall()
    assert rows == expected


def test_the_view_itself_has_no_more_columns(connection: olapdb.Connection) -> None:
    result = connection.execute("select * from (select * from r) limit 1")
    assert [c[0] for c in result.description or ()] == [
        "k", "day", "users", "mean", "q", "n", "more",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "select uniqMerge(more) from r",  # computed from a finished value
        "select uniqMerge(n) from r",  # a sum
        "select uniqMerge(k) from r",
        "select avgMerge(users) from r",  # states of another function
        "select uniqMerge(users) from (select users + 0 as users from r)",
        "select uniqMerge(users) from (select users from r limit 2)",
        "select uniqMerge(users) from (select distinct users from r)",
    ],
)
def test_other_columns_have_no_states(connection: olapdb.Connection, query: str) -> None:
    with pytest.raises(IllegalTypeOfArgument):
        connection.execute(query)
