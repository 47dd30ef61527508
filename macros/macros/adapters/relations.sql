{% macro olapdb__list_relations_without_caching(schema_relation) %}
  {% call statement('list_relations_without_caching', fetch_result=True, auto_begin=False) %}
    select
      {{ adapter.string_literal(target.database) }} as database,
      t.name as name,
      t.database as schema,
      multiIf(t.engine = 'View', 'view', t.engine = 'MaterializedView', 'materialized_view', 'table')
        as type
    from system.tables as t
    where t.database = {{ adapter.string_literal(schema_relation.schema) }}
    union all
    select {{ adapter.string_literal(target.database) }}, f.name, f.database, 'function'
    from system.user_functions as f
    where f.database = {{ adapter.string_literal(schema_relation.schema) }}
  {% endcall %}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}

{% macro olapdb__get_columns_in_relation(relation) %}
  {% call statement('get_columns_in_relation', fetch_result=True, auto_begin=False) %}
    select name, type from system.columns
    where database = {{ adapter.string_literal(relation.schema) }}
      and table = {{ adapter.string_literal(relation.identifier) }}
    order by position
  {% endcall %}
  {{ return(sql_convert_columns_in_relation(load_result('get_columns_in_relation').table)) }}
{% endmacro %}

{% macro olapdb__get_drop_sql(relation) %}
  drop {{ 'function' if relation.is_function else 'table' if relation.is_table else 'view' }} if exists {{ relation.render() }}
{% endmacro %}

{% macro olapdb__drop_table(relation) %}
  drop table if exists {{ relation.render() }}
{% endmacro %}

{% macro olapdb__drop_view(relation) %}
  drop view if exists {{ relation.render() }}
{% endmacro %}

{% macro olapdb__rename_relation(from_relation, to_relation) %}
  {% call statement('rename_relation', auto_begin=False) %}
    rename table {{ from_relation.render() }} to {{ to_relation.render() }}
  {% endcall %}
{% endmacro %}

{% macro olapdb__create_view_as(relation, sql) %}
  {%- set sql_header = config.get('sql_header', none) -%}
  {{ sql_header if sql_header is not none }}
  create or replace view {{ relation.render() }}
  {%- if config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as {{ adapter.view_query(sql) }}
{% endmacro %}

{# olapdb has no temporary tables. Instead dbt creates a table under a name of its own, which the
   materialization drops. #}
{% macro olapdb__create_table_as(temporary, relation, sql) %}
  {%- set sql_header = config.get('sql_header', none) -%}
  {{ sql_header if sql_header is not none }}
  {%- if config.get('contract').enforced and not temporary %}
    {{ get_assert_columns_equivalent(sql) }}
    create or replace table {{ relation.render() }}
    {{ adapter.with_indexes(get_table_columns_and_constraints(), config.model.config) }}
    {{ adapter.storage_clause(adapter.contract_storage(model)) }}
    as {{ get_select_subquery(sql) }}
    {{ adapter.query_settings(config.model.config) }}
  {%- else %}
    create or replace table {{ relation.render() }}
    {{ 'ENGINE = MergeTree ORDER BY tuple()' if temporary
       else adapter.with_indexes('', config.model.config) ~ ' '
            ~ adapter.storage_clause(config.model.config) }}
    as {{ sql }}
    {{ adapter.query_settings(config.model.config) }}
  {%- endif %}
{% endmacro %}

{% macro olapdb__validate_sql(sql) %}
  {% call statement('validate_sql', auto_begin=False) %}
    explain {{ sql }}
  {% endcall %}
  {{ return(load_result('validate_sql')) }}
{% endmacro %}

{% macro olapdb__current_timestamp() %}
  now()
{% endmacro %}

{# The warehouse has no users to whom anything could be granted. #}
{% macro olapdb__apply_grants(relation, grant_config, should_revoke=True) %}
  {% if grant_config %}
    {% do adapter.note_grants(relation) %}
  {% endif %}
{% endmacro %}

{% macro olapdb__persist_docs(relation, model, for_relation, for_columns) %}
  {% set description = model.description if for_relation and config.persist_relation_docs() and model.description else none %}
  {% set columns = model.columns if for_columns and config.persist_column_docs() else none %}
  {% if description is not none or columns %}
    {% do adapter.persist_comments(relation, description, columns) %}
  {% endif %}
{% endmacro %}

{# The engine converts the rows in the same commit. #}
{% macro olapdb__alter_column_type(relation, column_name, new_column_type) %}
  {% do run_query('alter table ' ~ relation.render() ~ ' modify column '
                  ~ adapter.quote(adapter.column_named(relation, column_name)) ~ ' ' ~ new_column_type) %}
{% endmacro %}

{# dbt show: SETTINGS end a statement, so LIMIT goes before them. Each data test comes here, too. #}
{% macro olapdb__get_limit_sql(sql, limit) %}
  {% if model is defined and model.language == 'python' %}
    {% do exceptions.raise_compiler_error(
      "dbt show runs SQL, and " ~ model.name ~ " is a Python model. Show what its last run made: "
      ~ "dbt show --inline \"select * from {{ ref('" ~ model.name ~ "') }}\"") %}
  {% endif %}
  {% if model is defined and model.resource_type == 'test' %}
    {% set sql = adapter.query_of_test(sql, model) %}
  {% endif %}
  {{ adapter.with_limit(sql, limit) if limit is not none else sql }}
{% endmacro %}
