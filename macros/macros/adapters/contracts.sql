{# The contract is compared in Python: types by their meaning, and NULL as the constraints say. #}
{% macro olapdb__get_assert_columns_equivalent(sql) %}
  {%- if not model['columns'] -%}
    {%- do exceptions.raise_contract_error([], []) -%}
  {%- endif -%}
  {%- set described = olapdb_described(sql) -%}
  {%- set promised, returned = adapter.compare_contract(model, described) -%}
  {%- if promised | map(attribute='formatted') | sort != returned | map(attribute='formatted') | sort -%}
    {%- do exceptions.raise_contract_error(promised, returned) -%}
  {%- endif -%}
{% endmacro %}

{# Return the columns of the model's query. Its header is statements of its own, which the query may need:
   SET max_threads = 1; #}
{% macro olapdb_described(sql) %}
  {%- if config.get('sql_header') -%}
    {%- do run_query(config.get('sql_header')) -%}
  {%- endif -%}
  {#- The statement that fills the model has these settings, which may make a column Nullable. -#}
  {%- set settings = adapter.query_settings(model['config'])
        if config.get('materialized') in ('table', 'incremental') else '' -%}
  {#- Not dbt's macro, which puts the query into a subquery, where settings cannot be. -#}
  {{ return(adapter.get_column_schema_from_query(sql ~ '\n' ~ settings)) }}
{% endmacro %}

{% macro olapdb__get_table_columns_and_constraints() %}
  (
  {%- for element in adapter.contract_elements(model) %}
    {{ element }}{{ "," if not loop.last }}
  {%- endfor %}
  )
{% endmacro %}

{# CREATE TABLE … AS takes columns by position: the query's, in the order of the contract. #}
{% macro olapdb__get_select_subquery(sql) %}
  select
  {%- for column in model['columns'].values() %}
    {{ adapter.quote(column['name']) }}{{ "," if not loop.last }}
  {%- endfor %}
  from (
    {{ sql }}
  ) as model_subq
{% endmacro %}
