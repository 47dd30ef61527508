"""Tests that look for rows which are not there: dbt's `relationships`, and those of packages; and the
macros of packages that the adapter brings. The packages here have the macros of the real ones that
matter, with their text: they are looked up by dispatch in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt

pytestmark = pytest.mark.feature("dbt")

DBT_UTILS = """
{% test relationships_where(model, column_name, to, field) %}
with left_table as (select {{ column_name }} as id from {{ model }}),
right_table as (select {{ field }} as id from {{ to }})
select left_table.id, right_table.id as right_id
from left_table left join right_table on left_table.id = right_table.id
where right_table.id is null
{% endtest %}

{% test sequential_values(model, column_name) %}
with windowed as (
  select {{ column_name }}, lag({{ column_name }}) over (order by {{ column_name }}) as previous from {{ model }}
)
select * from windowed where not({{ column_name }} = previous + 1)
{% endtest %}

{% macro get_tables_by_pattern_sql(schema_pattern, table_pattern, exclude='', database=target.database) %}
  {{ return(adapter.dispatch('get_tables_by_pattern_sql', 'dbt_utils')(schema_pattern, table_pattern, exclude, database)) }}
{% endmacro %}

{% macro default__get_tables_by_pattern_sql(schema_pattern, table_pattern, exclude='', database=target.database) %}
  select table_schema, table_name, table_type from {{ database }}.information_schema.tables
{% endmacro %}

{% macro date_spine(datepart, start_date, end_date) %}
  {{ return(adapter.dispatch('date_spine', 'dbt_utils')(datepart, start_date, end_date)) }}
{% endmacro %}
"""
DBT_DATE = "".join(
    f"{{% macro {name}({', '.join(arguments)}) %}}"
    f"{{{{ adapter.dispatch('{name}', 'dbt_date')({', '.join(arguments)}) }}}}{{% endmacro %}}\n"
    for name, arguments in {
        "convert_timezone": ("column", "target_tz", "source_tz"),
        "date_part": ("datepart", "date"),
        "day_of_week": ("date", "isoweek"),
        "day_name": ("date", "short"),
        "month_name": ("date", "short"),
        "from_unixtimestamp": ("epochs", "format"),
        "iso_week_start": ("date",),
        "week_start": ("date",),
        "week_end": ("date",),
        "week_of_year": ("date",),
    }.items()
)
DBT_EXPECTATIONS = """
{% macro quantile(field, quantile) %}
  {{ adapter.dispatch('quantile', 'dbt_expectations')(field, quantile, none) }}
{% endmacro %}
{% macro regexp_instr(source_value, regexp, position=1, occurrence=1, is_raw=False, flags="") %}
  {{ adapter.dispatch('regexp_instr', 'dbt_expectations')(source_value, regexp, position, occurrence, is_raw, flags) }}
{% endmacro %}
"""
AUDIT_HELPER = """
{% macro compare_column_values(a_query, b_query, primary_key, column_to_compare) -%}
  {{ return(adapter.dispatch('compare_column_values', 'audit_helper')(a_query, b_query, primary_key, column_to_compare, false, 'a', 'b')) }}
{%- endmacro %}
{% macro default__compare_column_values(a_query, b_query, primary_key, column_to_compare, emojis, a_relation_name, b_relation_name) -%}
with a_query as ({{ a_query }}), b_query as ({{ b_query }})
select coalesce(a_query.{{ primary_key }}, b_query.{{ primary_key }}) as k,
  case when a_query.{{ primary_key }} is null then 'missing from a'
    when b_query.{{ primary_key }} is null then 'missing from b' else 'both' end as status
from a_query full outer join b_query on a_query.{{ primary_key }} = b_query.{{ primary_key }}
{%- endmacro %}
{% macro quick(query_a, query_b, columns, event_time) %}
  {{ return(adapter.dispatch('quick_are_queries_identical', 'audit_helper')(query_a, query_b, columns, event_time)) }}
{% endmacro %}
"""
PACKAGES = {
    "dbt_utils": DBT_UTILS,
    "dbt_date": DBT_DATE,
    "dbt_expectations": DBT_EXPECTATIONS,
    "audit_helper": AUDIT_HELPER,
}
DAY = "toDate('2024-12-29')"  # a Sunday

CHECKED = """
models:
  - name: orders
    columns:
      - name: customer
        data_tests:
          - relationships: {arguments: {to: ref('customers'), field: id}}
          - dbt_utils.relationships_where: {arguments: {to: ref('customers'), field: id}}
          - dbt_utils.relationships_where:
              arguments: {to: ref('customers'), field: id}
              name: stored
              config: {store_failures: true}
          - own_relationships: {arguments: {to: ref('customers'), field: id}}
      - name: name
        data_tests:
          - relationships: {arguments: {to: ref('customers'), field: name}}
  - name: joined
    columns:
      - name: id
        data_tests:
          - dbt_utils.relationships_where: {arguments: {to: ref('customers'), field: id}}
          - dbt_utils.sequential_values
"""
OWN = """
{% test own_relationships(model, column_name, to, field) %}
select o.{{ column_name }} from {{ model }} o left join {{ to }} c on o.{{ column_name }} = c.{{ field }}
where c.{{ field }} is null
{% endtest %}
"""


@pytest.fixture(scope="class")
def packages(project_root: str) -> dict[str, Any]:
    """Write the packages beside the project."""
    folders = []
    for name, macros in PACKAGES.items():
        folder = Path(project_root) / "beside" / name
        (folder / "macros").mkdir(parents=True, exist_ok=True)
        (folder / "dbt_project.yml").write_text(f"name: {name}\nversion: 1.0.0\n")
        (folder / "macros" / "all.sql").write_text(macros)
        folders.append({"local": str(folder)})
    return {"packages": folders}


class TestMissingRows:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        table = "{{ config(materialized='table') }}"
        return {
            "customers.sql": f"{table} select number + 5 as id, toString(number) as name from numbers(3)",
            "orders.sql": f"{table} select number + 5 as customer, toString(number) as name from numbers(4)",
            "joined.sql": "select o.customer as id, c.name as name from {{ ref('orders') }} o "
            "left join {{ ref('customers') }} c on o.customer = c.id",
            "schema.yml": CHECKED,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": OWN}

    def test_a_row_without_a_partner_fails_them(self, project: Any) -> None:
        run_dbt(["deps"])
        run_dbt(["run"])
        results = run_dbt(["test"], expect_pass=False)
        failures = {result.node.name: result.failures for result in results}
        own = [n for name, n in failures.items() if name.startswith("own_relationships")]
        assert own == [0]  # the project's tests are ClickHouse's SQL: 0 is no NULL there
        sequential = [n for name, n in failures.items() if "sequential" in name]
        assert sequential == [0]  # the first row has none before it
        others = {
            name: n
            for name, n in failures.items()
            if "sequential" not in name and not name.startswith("own_")
        }
        assert len(others) == 5
        assert set(others.values()) == {1}, others

    def test_a_view_answers_every_reader_alike(self, project: Any) -> None:
        run_dbt(["deps"])
        run_dbt(["run"])
        for nulls in (0, 1):
            rows = project.run_sql(
                "select id, name from (select * from {schema}.joined) order by id desc limit 1 "
                f"settings join_use_nulls = {nulls}",
                fetch="all",
            )
            assert [tuple(row) for row in rows] == [(8, "")]


class TestMacros:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sums.sql": "{{ config(materialized='incremental_mv') }} "
            "select k, count() as n from {{ source('raw', 'events') }} group by k",
            "sources.yml": "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: events}]}]",
            "found.sql": "-- depends_on: {{ ref('sums') }}\n"
            "{{ dbt_utils.get_tables_by_pattern_sql(target.schema, 'sum%') }}",
            "days.sql": "{{ dbt_utils.date_spine('day', 'yesterday()', "
            "dbt.dateadd('day', 3, 'yesterday()')) }}",
            "dates.sql": f"""select
                toString({{{{ dbt_date.convert_timezone("toDateTime('2024-07-01 12:00:00')", 'America/New_York', 'UTC') }}}}) as there,
                toString({{{{ dbt_date.convert_timezone("toDateTime('2024-07-01 12:00:00')", 'UTC', 'America/New_York') }}}}) as back,
                {{{{ dbt_date.convert_timezone("nullIf(now(), now())", 'UTC', 'Europe/Berlin') }}}} as nothing,
                [{{{{ dbt_date.date_part('dayofweek', "{DAY}") }}}}, {{{{ dbt_date.date_part('isoweek', "{DAY}") }}}},
                 {{{{ dbt_date.day_of_week("{DAY}", true) }}}}, {{{{ dbt_date.day_of_week("{DAY}", false) }}}},
                 {{{{ dbt_date.week_of_year("{DAY}") }}}}] as parts,
                {{{{ dbt_date.day_name("{DAY}", true) }}}} || {{{{ dbt_date.day_name("{DAY}", false) }}}} as day,
                {{{{ dbt_date.month_name("{DAY}", true) }}}} || {{{{ dbt_date.month_name("{DAY}", false) }}}} as month,
                toString({{{{ dbt_date.from_unixtimestamp("1500", "milliseconds") }}}}) as at,
                arrayMap(x -> toString(x), [{{{{ dbt_date.iso_week_start("{DAY}") }}}},
                  {{{{ dbt_date.week_start("{DAY}") }}}}, {{{{ dbt_date.week_end("{DAY}") }}}}]) as weeks""",
            "audited.sql": "{{ audit_helper.compare_column_values("
            "'select number + 5 as k from numbers(2)', 'select number + 6 as k from numbers(2)', 'k', 'k') }}",
            "same.sql": "select (select * from ({{ audit_helper.quick("
            "'select number as k from numbers(3)', 'select 2 - number as k from numbers(3)', ['k'], none) }})) as yes, "
            "(select * from ({{ audit_helper.quick('select 1 as k', 'select 1 as k union all select 1', ['k'], none) }})) as no, "
            "(select * from ({{ audit_helper.quick('select 1 as k, CAST(NULL AS Nullable(Int32)) as v', "
            "'select 2 as k, CAST(NULL AS Nullable(Int32)) as v', ['k', 'v'], none) }})) as no_beside_null",
            "expected.sql": r"""select {{ dbt_expectations.quantile('number', 0.5) }} as middle,
                max({{ dbt_expectations.regexp_instr("'a.b'", "a\.B", flags='i') }}) as found,
                max({{ dbt_expectations.regexp_instr("'axb'", "a\.b", flags='c') }}) as nothing
                from numbers(4)""",
        }

    def test_values(self, project: Any) -> None:
        project.run_sql("create table {schema}.events (k Int64) engine = MergeTree order by k")
        run_dbt(["deps"])
        run_dbt(["run"])

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in project.run_sql(sql, fetch="all")]

        assert rows("select table_name, table_type from {schema}.found") == [("sums", "view")]
        assert rows("select count(), max(date_day) = today() + 1 from {schema}.days") == [(3, 1)]
        ((there, back, nothing, parts, *rest),) = rows("select * from {schema}.dates")
        assert (there, back) == ("2024-07-01 08:00:00.000000", "2024-07-01 16:00:00.000000")
        assert nothing is None
        assert list(parts) == [0, 52, 7, 1, 52]
        assert rest[:3] == ["SunSunday", "DecDecember", "1970-01-01 00:00:01.500"]
        assert list(rest[3]) == ["2024-12-23", "2024-12-29", "2025-01-04"]
        assert sorted(rows("select k, status from {schema}.audited")) == [
            (5, "missing from b"),
            (6, "both"),
            (7, "missing from a"),
        ]
        assert rows("select * from {schema}.same") == [(1, 0, 0)]
        assert rows("select * from {schema}.expected") == [(1.5, 1, 0)]

    def test_what_they_refuse(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        run_dbt(["deps"])
        for call, reason in (
            ("dbt_date.date_part('era', 'now()')", "has no part era"),
            ("dbt_date.from_unixtimestamp('1', 'years')", "not years"),
            (
                "dbt_expectations.regexp_instr('a', 'b', 2)",
                "position and occurrence are 1, not 2 and 1",
            ),
            ("audit_helper.quick('select 1', 'select 1', ['1'], 'at')", "has no event_time"),
        ):
            inline = ["compile", "--inline", f"select {{{{ {call} }}}}"]
            assert not dbtRunner().invoke(inline).success
            assert reason in capsys.readouterr().out
