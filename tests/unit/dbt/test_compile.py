"""From a model's SELECT to trigger, columns and read view; no dbt and no warehouse."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from dbt.adapters.olapdb.incremental_mv.chain import Upstream, attach
from dbt.adapters.olapdb.incremental_mv.definition import (
    Definition,
    ModelConfig,
    define,
    partition_clause,
)
from dbt.adapters.olapdb.incremental_mv.inputs import is_limited, read_model
from dbt.adapters.olapdb.incremental_mv.names import Names
from dbt.adapters.olapdb.incremental_mv.refusals import refuse_clauses
from dbt.adapters.olapdb.incremental_mv.shape import Shape, shape_of
from dbt_common.exceptions import CompilationError

import olapdb
from olapdb.sql.format import to_sql
from olapdb.sql.nodes import TableName

NAMES = Names("an", "m")


def shape(sql: str, upstream: Upstream | None = None) -> Shape:
    select = read_model(sql)
    refuse_clauses(select)

    def find(name: TableName) -> Upstream | None:
        return upstream if upstream is not None and name.name == upstream.model else None

    return shape_of(attach(select, find))


def definition(sql: str, **config: object) -> Definition:
    """Over the table `f` of a warehouse in memory, partitioned by month."""
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE f (ts DateTime, day Date, origin String, tail Nullable(String), "
            "delay Int32) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY ts"
        )
        made = shape(sql)
        types = connection.describe(to_sql(made.trigger))
    return define(made, types, "toYYYYMM(day)", ModelConfig("model.p.m", **config))  # type: ignore[arg-type]


def reading(made: Shape) -> dict[str, str]:
    return {o.name: to_sql(o.expression) for o in made.outputs}


def test_columns_of_the_target() -> None:
    made = definition(
        "SELECT origin, day, count() AS n, sum(delay) AS total, min(delay) AS least, "
        "avg(delay) AS mean, quantile(0.9)(delay) AS p90, uniq(tail) AS tails FROM f "
        "GROUP BY origin, day"
    )
    assert dict(made.columns) == {
        "origin": "String",
        "day": "Date",
        "n": "SimpleAggregateFunction(sum, UInt64)",
        "total": "SimpleAggregateFunction(sum, Int64)",
        "least": "SimpleAggregateFunction(min, Int32)",
        "mean": "AggregateFunction(avg, Int32)",
        "p90": "AggregateFunction(quantile(0.9), Int32)",
        "tails": "AggregateFunction(uniq, Nullable(String))",
    }
    assert made.order_by == "(`origin`, `day`)"
    assert made.partition_by == "toYYYYMM(`day`)"
    assert "quantileState(0.9)(delay) AS p90" in made.trigger
    assert "GROUP BY states.`origin`, states.`day`" in made.create_read_view(NAMES)


def test_expressions_are_made_of_hidden_states() -> None:
    made = shape(
        "SELECT origin, sum(delay) / count() AS mean, round(avg(delay), 1) AS a, "
        "sum(delay) AS total FROM f GROUP BY origin"
    )
    assert [s.name for s in made.states] == ["__sum_1", "__count_2", "__avg_3", "total"]
    assert reading(made)["mean"] == "sum(states.__sum_1) / sum(states.__count_2)"
    assert reading(made)["a"] == "round(avgMerge(states.__avg_3), 1)"


def test_keys_by_position_alias_expression_and_unselected() -> None:
    made = shape(
        "SELECT toDate(ts) AS day, upper(origin) AS o, count() AS n FROM f GROUP BY 1, o, delay > 0"
    )
    assert [k.name for k in made.keys] == ["day", "o", "__key_3"]
    assert to_sql(made.trigger).endswith("GROUP BY day, o, __key_3")
    assert list(reading(made)) == ["day", "o", "n"]


def test_an_alias_that_is_used_in_another_column() -> None:
    made = shape("SELECT origin, count() AS n, n * 2 AS twice FROM f GROUP BY origin")
    assert reading(made)["twice"] == "sum(states.n) * 2"


def test_distinct_filter_and_case_of_names() -> None:
    made = shape(
        "SELECT origin, COUNT(DISTINCT tail) AS t, SUM(delay) FILTER (WHERE delay > 0) AS late, "
        "AVG(delay) AS mean FROM f GROUP BY origin"
    )
    fired = [to_sql(s.storage.fired) for s in made.states]
    assert fired == ["uniqExactState(tail)", "SUMIf(delay, delay > 0)", "avgState(delay)"]
    assert reading(made)["late"] == "sum(states.late)"


def test_min_of_no_rows_is_a_state() -> None:
    made = shape("SELECT min(delay) AS least, count() AS n FROM f WHERE delay > 5")
    assert [to_sql(s.storage.fired) for s in made.states] == ["minState(delay)", "count()"]
    made = shape("SELECT origin, minIf(delay, delay > 5) AS least FROM f GROUP BY origin")
    assert to_sql(made.states[0].storage.fired) == "minIfState(delay, delay > 5)"


def test_a_last_select_star_is_dissolved() -> None:
    made = shape(
        "WITH src AS (SELECT * FROM f WHERE delay > 0), final AS (SELECT origin, count() AS n "
        "FROM src GROUP BY origin) SELECT n AS flights, origin FROM final"
    )
    assert list(reading(made)) == ["flights", "origin"]
    assert to_sql(made.trigger) == (
        "WITH src AS (SELECT * FROM f WHERE delay > 0) "
        "SELECT origin, count() AS flights FROM src GROUP BY origin"
    )


def test_limits_of_empty_and_sample_are_taken_out() -> None:
    empty = "SELECT count() AS n FROM (select * from `raw`.`f` where false limit 0) AS x"
    sampled = (
        "SELECT count() AS n FROM (select * from `raw`.`f` where ts >= '2020-01-01' "
        "and 'dbt_sample' != '')"
    )
    assert is_limited(empty)
    assert is_limited(sampled)
    assert not is_limited("SELECT count() FROM f WHERE false")
    assert to_sql(read_model(empty)) == "SELECT count() AS n FROM raw.f AS x"
    assert to_sql(read_model(sampled)) == "SELECT count() AS n FROM raw.f"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("day", "toYYYYMM(`k`)"),
        ("f.day", "toYYYYMM(`k`)"),
        ("toStartOfMonth(day)", "toYYYYMM(`k`)"),
        ("toYYYYMM(day)", "`k`"),
        ("toYear(day)", ""),
        ("origin", ""),
    ],
)
def test_the_partition_key_follows_the_source(key: str, expected: str) -> None:
    made = shape(f"SELECT {key} AS k, count() AS n FROM f GROUP BY k")
    assert partition_clause(made, "toYYYYMM(day)", ModelConfig("m")) == expected
    configured = ModelConfig("m", partition_by=["a", "b"])
    assert partition_clause(made, "toYYYYMM(day)", configured) == "(a, b)"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT a, count() AS n FROM f GROUP BY a HAVING n > 1", "HAVING would be answered"),
        ("SELECT a, count() AS n FROM f WHERE a < rand() GROUP BY a", "rand() gives another value"),
        ("SELECT a FROM f LIMIT 3", "LIMIT would be answered"),
        ("SELECT DISTINCT a FROM f", "DISTINCT would be answered"),
        ("SELECT a FROM f ORDER BY a", "ORDER BY has no meaning"),
        ("SELECT a, row_number() OVER () AS r FROM f", "window function row_number"),
        ("SELECT a FROM f UNION ALL SELECT a FROM g", "UNION, EXCEPT or INTERSECT"),
        ("SELECT f.a FROM f RIGHT JOIN g ON f.a = g.a", "a RIGHT JOIN with g"),
        ("SELECT 1 AS x", "no FROM"),
        ("SELECT a, b, count() AS n FROM f GROUP BY a", "column b uses b"),
        ("SELECT sum(x) AS x, max(x) AS y FROM f", "inside another"),
        ("SELECT max(n) AS m FROM (SELECT a, count() AS n FROM f GROUP BY a)", "a subquery that"),
        ("SELECT count() AS n, count() AS n FROM f", "two columns are called n"),
        ("SELECT * FROM", "does not parse"),
    ],
)
def test_refusals_name_the_reason(sql: str, message: str) -> None:
    with pytest.raises((CompilationError, olapdb.Error)) as caught:
        shape(sql)
    if message != "does not parse":
        assert message in str(caught.value)


FACTS: Mapping[str, tuple[str, str]] = {
    "origin": ("key", ""),
    "hour": ("key", ""),
    "n": ("count", ""),
    "total": ("sum", ""),
    "least": ("min", ""),
    "tails": ("state", "uniq"),
    "p90": ("state", "quantile"),
    "mean": ("expression", ""),
}
HOURLY = Upstream("hourly", TableName("hourly__target", "an"), FACTS)


def test_a_chain_attaches_to_the_target() -> None:
    made = shape(
        "SELECT origin, toDate(hour) AS day, sum(n) AS n, min(least) AS least, "
        "uniqMerge(tails) AS tails, quantileMerge(0.9)(p90) AS p90, max(hour) AS last "
        "FROM an.hourly WHERE origin != 'X' GROUP BY origin, day",
        HOURLY,
    )
    assert "FROM an.hourly__target AS hourly" in to_sql(made.trigger)
    assert reading(made)["tails"] == "uniqMerge(states.tails)"
    assert "uniqMergeState(tails) AS tails" in to_sql(made.trigger)


def test_a_chain_through_a_cte_does_not_read_the_view_any_more() -> None:
    made = shape(
        "WITH h AS (SELECT origin, n AS flights FROM hourly) "
        "SELECT origin, sum(flights) AS n FROM h GROUP BY origin",
        HOURLY,
    )
    assert to_sql(made.trigger) == (
        "SELECT origin, sum(flights) AS n FROM "
        "(SELECT origin, n AS flights FROM an.hourly__target AS hourly) AS h GROUP BY origin"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("count() AS c", "would count the partial rows of hourly"),
        ("avg(n) AS c", "n is a count: use sum(n)."),
        ("max(least) AS c", "least is a min: use min(least)."),
        ("sum(tails) AS c", "use uniqMerge(tails)."),
        ("uniqExactMerge(tails) AS c", "use uniqMerge(tails)."),
        ("sum(mean) AS c", "mean is computed from states"),
        ("sum(n + 1) AS c", "use sum(n)."),
        ("sum(m) AS c", "m is no column of hourly, which has origin, "),
    ],
)
def test_a_chain_that_would_mean_something_else(columns: str, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        shape(f"SELECT origin, {columns} FROM hourly GROUP BY origin", HOURLY)
    assert message in str(caught.value)
    assert "column c" in str(caught.value)


def test_partial_rows_are_never_shown_or_filtered_by() -> None:
    with pytest.raises(CompilationError, match="rows of partial states"):
        shape("SELECT origin FROM hourly", HOURLY)
    with pytest.raises(CompilationError, match="WHERE uses n of hourly"):
        shape("SELECT origin, sum(n) AS n2 FROM hourly WHERE n > 1 GROUP BY origin", HOURLY)


def test_the_digest_tells_what_changed() -> None:
    one = definition("SELECT origin, count() AS n FROM f GROUP BY origin")
    same = definition("select origin,\n  count(*) as n from f group by 1  -- flights")
    other = definition("SELECT origin, count() AS n FROM f WHERE delay > 0 GROUP BY origin")
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_order_by_of_a_model() -> None:
    made = definition(
        "SELECT origin, day, count() AS n FROM f GROUP BY origin, day", order_by=["day", "origin"]
    )
    assert made.order_by == "(`day`, `origin`)"
    with pytest.raises(CompilationError, match="differ"):
        definition("SELECT origin, count() AS n FROM f GROUP BY origin", order_by="day")
    with pytest.raises(CompilationError, match="Give config order_by"):
        definition("SELECT origin, delay FROM f")
    nullable = definition("SELECT tail, count() AS n FROM f GROUP BY tail")
    assert nullable.settings == "SETTINGS allow_nullable_key = 1"
