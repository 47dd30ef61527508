"""Compiling a model's SELECT to trigger, columns and read view, without a dbt project."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from dbt.adapters.olapdb.incremental_mv.chain import Upstream, attach_to_target
from dbt.adapters.olapdb.incremental_mv.compile import compile_model
from dbt.adapters.olapdb.incremental_mv.model_definition import (
    ModelConfig,
    ModelDefinition,
    define_model,
    partition_clause,
)
from dbt.adapters.olapdb.incremental_mv.model_sql import is_limited, read_model
from dbt.adapters.olapdb.incremental_mv.names import ModelNames
from dbt.adapters.olapdb.incremental_mv.query_split import SplitQuery, split_query
from dbt.adapters.olapdb.incremental_mv.refusals import refuse_clauses
from dbt_common.exceptions import CompilationError

import olapdb
from olapdb.sql.format import to_sql
from olapdb.sql.nodes import TableName

pytestmark = pytest.mark.feature("dbt")

NAMES = ModelNames("an", "m")


def split(sql: str, upstream: Upstream | None = None) -> SplitQuery:
    select = read_model(sql)
    refuse_clauses(select)

    def find(name: TableName) -> Upstream | None:
        return upstream if upstream is not None and name.name == upstream.model else None

    return split_query(attach_to_target(select, find))


def definition(sql: str, **config: object) -> ModelDefinition:
    """Compile a model over the table `f`, partitioned by month, of a warehouse in memory."""
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE f (ts DateTime, day Date, origin String, tail Nullable(String), "
            "delay Int32) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY ts"
        )
        query = split(sql)
        types = connection.describe(to_sql(query.trigger))
    return define_model(query, types, "toYYYYMM(day)", ModelConfig("model.p.m", **config))  # type: ignore[arg-type]


def read_columns(query: SplitQuery) -> dict[str, str]:
    return {o.name: to_sql(o.expression) for o in query.outputs}


def test_columns_of_the_target() -> None:
    model = definition(
        "SELECT origin, day, count() AS n, sum(delay) AS total, min(delay) AS least, "
        "avg(delay) AS mean, quantile(0.9)(delay) AS p90, uniq(tail) AS tails FROM f "
        "GROUP BY origin, day"
    )
    assert dict(model.columns) == {
        "origin": "String",
        "day": "Date",
        "n": "SimpleAggregateFunction(sum, UInt64)",
        "total": "SimpleAggregateFunction(sum, Int64)",
        "least": "SimpleAggregateFunction(min, Int32)",
        "mean": "AggregateFunction(avg, Int32)",
        "p90": "AggregateFunction(quantile(0.9), Int32)",
        "tails": "AggregateFunction(uniq, Nullable(String))",
    }
    assert model.order_by == "(`origin`, `day`)"
    assert model.partition_by == "toYYYYMM(`day`)"
    assert "quantileState(0.9)(delay) AS p90" in model.trigger
    assert "GROUP BY states.`origin`, states.`day`" in model.create_read_view(NAMES)


def test_expressions_over_aggregates_are_read_from_hidden_states() -> None:
    query = split(
        "SELECT origin, sum(delay) / count() AS mean, round(avg(delay), 1) AS a, "
        "sum(delay) AS total FROM f GROUP BY origin"
    )
    assert [s.name for s in query.states] == ["__sum_1", "__count_2", "__avg_3", "total"]
    assert read_columns(query)["mean"] == "sum(states.__sum_1) / sum(states.__count_2)"
    assert read_columns(query)["a"] == "round(avgMerge(states.__avg_3), 1)"


def test_keys_by_position_alias_and_expression_selected_or_not() -> None:
    query = split(
        "SELECT toDate(ts) AS day, upper(origin) AS o, count() AS n FROM f GROUP BY 1, o, delay > 0"
    )
    assert [k.name for k in query.keys] == ["day", "o", "__key_3"]
    assert to_sql(query.trigger).endswith("GROUP BY day, o, __key_3")
    assert list(read_columns(query)) == ["day", "o", "n"]


def test_an_alias_used_in_another_column_is_expanded() -> None:
    query = split("SELECT origin, count() AS n, n * 2 AS twice FROM f GROUP BY origin")
    assert read_columns(query)["twice"] == "sum(states.n) * 2"


def test_distinct_filter_and_upper_case_names_become_functions() -> None:
    query = split(
        "SELECT origin, COUNT(DISTINCT tail) AS t, SUM(delay) FILTER (WHERE delay > 0) AS late, "
        "AVG(delay) AS mean FROM f GROUP BY origin"
    )
    calls = [to_sql(s.storage.trigger_call) for s in query.states]
    assert calls == ["uniqExactState(tail)", "SUMIf(delay, delay > 0)", "avgState(delay)"]
    assert read_columns(query)["late"] == "sum(states.late)"


def test_min_without_keys_or_with_a_condition_is_stored_as_a_state() -> None:
    query = split("SELECT min(delay) AS least, count() AS n FROM f WHERE delay > 5")
    assert [to_sql(s.storage.trigger_call) for s in query.states] == ["minState(delay)", "count()"]
    query = split("SELECT origin, minIf(delay, delay > 5) AS least FROM f GROUP BY origin")
    assert to_sql(query.states[0].storage.trigger_call) == "minIfState(delay, delay > 5)"


def test_an_outer_select_of_columns_is_dissolved() -> None:
    query = split(
        "WITH src AS (SELECT * FROM f WHERE delay > 0), final AS (SELECT origin, count() AS n "
        "FROM src GROUP BY origin) SELECT n AS flights, origin FROM final"
    )
    assert list(read_columns(query)) == ["flights", "origin"]
    assert to_sql(query.trigger) == (
        "WITH src AS (SELECT * FROM f WHERE delay > 0) "
        "SELECT origin, count() AS flights FROM src GROUP BY origin"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n AS flights, o FROM (SELECT origin AS o, * EXCEPT (origin) FROM (SELECT origin, "
        "count() AS n FROM f GROUP BY origin))",
        "WITH a AS (SELECT origin, count() AS n FROM f GROUP BY origin), b AS (SELECT * FROM a), "
        "c AS (SELECT n AS flights, origin AS o FROM b) SELECT * FROM c",
    ],
)
def test_selects_of_columns_inside_each_other_are_dissolved(sql: str) -> None:
    text = to_sql(read_model(sql))
    assert text.endswith("SELECT count() AS flights, origin AS o FROM f GROUP BY origin"), text
    assert definition(sql).group_by == "states.`o`"


def test_limits_of_empty_and_sample_are_removed() -> None:
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
    query = split(f"SELECT {key} AS k, count() AS n FROM f GROUP BY k")
    assert partition_clause(query, "toYYYYMM(day)", ModelConfig("m")) == expected
    configured = ModelConfig("m", partition_by=["a", "b"])
    assert partition_clause(query, "toYYYYMM(day)", configured) == "(a, b)"


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
def test_refused_queries_get_the_reason(sql: str, message: str) -> None:
    with pytest.raises((CompilationError, olapdb.Error)) as caught:
        split(sql)
    if message != "does not parse":
        assert message in str(caught.value)


COLUMN_KINDS: Mapping[str, tuple[str, str]] = {
    "origin": ("key", ""),
    "hour": ("key", ""),
    "n": ("count", ""),
    "total": ("sum", ""),
    "least": ("min", ""),
    "tails": ("state", "uniq"),
    "p90": ("state", "quantile"),
    "mean": ("expression", ""),
}
HOURLY = Upstream("hourly", TableName("hourly__target", "an"), COLUMN_KINDS)


def test_a_chained_model_reads_the_target() -> None:
    query = split(
        "SELECT origin, toDate(hour) AS day, sum(n) AS n, min(least) AS least, "
        "uniqMerge(tails) AS tails, quantileMerge(0.9)(p90) AS p90, max(hour) AS last "
        "FROM an.hourly WHERE origin != 'X' GROUP BY origin, day",
        HOURLY,
    )
    assert "FROM an.hourly__target AS hourly" in to_sql(query.trigger)
    assert read_columns(query)["tails"] == "uniqMerge(states.tails)"
    assert "uniqMergeState(tails) AS tails" in to_sql(query.trigger)


def test_a_chained_model_may_keep_states() -> None:
    """ClickHouse's way of a view on a view: readers of the second one merge once more."""
    query = split(
        "SELECT toDate(hour) AS day, uniqMergeState(tails) AS tails FROM hourly GROUP BY day",
        HOURLY,
    )
    assert "uniqMergeState(tails) AS tails" in to_sql(query.trigger)
    assert read_columns(query)["tails"] == "uniqMergeState(states.tails)"
    assert query.column_kinds()["tails"] == ("state", "uniq")


def test_a_chain_through_a_cte_reads_the_target_only() -> None:
    query = split(
        "WITH h AS (SELECT origin, n AS flights FROM hourly) "
        "SELECT origin, sum(flights) AS n FROM h GROUP BY origin",
        HOURLY,
    )
    assert to_sql(query.trigger) == (
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
        ("uniqExactMergeState(tails) AS c", "use uniqMerge(tails)."),
        ("sum(mean) AS c", "mean is computed from states"),
        ("sum(n + 1) AS c", "use sum(n)."),
        ("sum(m) AS c", "m is no column of hourly, which has origin, "),
    ],
)
def test_a_chain_with_another_answer_over_states_is_refused(columns: str, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        split(f"SELECT origin, {columns} FROM hourly GROUP BY origin", HOURLY)
    assert message in str(caught.value)
    assert "column c" in str(caught.value)


def test_partial_rows_cannot_be_selected_or_filtered() -> None:
    with pytest.raises(CompilationError, match="rows of partial states"):
        split("SELECT origin FROM hourly", HOURLY)
    with pytest.raises(CompilationError, match="WHERE uses n of hourly"):
        split("SELECT origin, sum(n) AS n2 FROM hourly WHERE n > 1 GROUP BY origin", HOURLY)


def test_the_digest_changes_with_the_meaning_only() -> None:
    model = definition("SELECT origin, count() AS n FROM f GROUP BY origin")
    same = definition("select origin,\n  count(*) as n from f group by 1  -- flights")
    other = definition("SELECT origin, count() AS n FROM f WHERE delay > 0 GROUP BY origin")
    assert model.digest == same.digest
    assert model.digest != other.digest


def test_order_by_names_the_keys() -> None:
    model = definition(
        "SELECT origin, day, count() AS n FROM f GROUP BY origin, day", order_by=["day", "origin"]
    )
    assert model.order_by == "(`day`, `origin`)"
    with pytest.raises(CompilationError, match="differ"):
        definition("SELECT origin, count() AS n FROM f GROUP BY origin", order_by="day")
    with pytest.raises(CompilationError, match="Give config order_by"):
        definition("SELECT origin, delay FROM f")
    nullable = definition("SELECT tail, count() AS n FROM f GROUP BY tail")
    assert nullable.settings == "SETTINGS allow_nullable_key = 1"


def test_all_mistakes_of_a_model_are_one_error() -> None:
    sql = "SELECT DISTINCT a, b, c, now() AS t, count() AS n FROM f RIGHT JOIN g USING a GROUP BY a"
    with pytest.raises(CompilationError) as caught:
        compile_model(NoWarehouse(), ModelNames("d", "m"), sql, ModelConfig("m"))  # type: ignore[arg-type]
    text = str(caught.value)
    assert "There are 4 things that a trigger cannot keep" in text
    for part in (
        "1. incremental_mv: DISTINCT",
        "2. incremental_mv: now()",
        "3. incremental_mv: a RIGHT",
    ):
        assert part in text
    assert "column b uses b" in text
    assert "column c uses c" in text


def test_a_syntax_error_shows_the_line_and_a_caret() -> None:
    sql = "SELECT a,\n  count( AS n\nFROM f"
    with pytest.raises(CompilationError) as caught:
        compile_model(NoWarehouse(), ModelNames("d", "m"), sql, ModelConfig("m"))  # type: ignore[arg-type]
    shown = str(caught.value).splitlines()
    at = next(i for i, line in enumerate(shown) if line.strip().startswith("line 2 |"))
    assert shown[at][shown[at + 1].index("^") :].startswith("AS")


@pytest.mark.parametrize("mode", ["ALL", "DISTINCT"])
def test_a_union_below_is_refused_with_what_works(mode: str) -> None:
    sql = f"SELECT a, count() AS n FROM (SELECT a FROM f UNION {mode} SELECT a FROM g) GROUP BY a"
    with pytest.raises(CompilationError, match="Make one model of each branch") as caught:
        split(sql)
    assert "Use UNION ALL" not in str(caught.value)


class NoWarehouse:
    """A warehouse that no mistake of the SQL alone may ask."""
