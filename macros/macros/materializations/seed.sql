{% macro olapdb__create_csv_table(model, agate_table) %}
  {{ return(olapdb_create_seed(this, model, agate_table)) }}
{% endmacro %}

{# Create or replace the seed's table, with the rows of the table `rows` if it is given. #}
{% macro olapdb_create_seed(relation, model, agate_table, rows=none) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {%- set quote_columns = model['config'].get('quote_columns', none) -%}
  {% set sql %}
    {%- set columns %}(
      {%- for name in agate_table.column_names %}
        {{ adapter.quote_seed_column(name | string, quote_columns) }} {{ adapter.seed_column_type(agate_table, loop.index0, overrides) }}
        {%- if not loop.last %},{% endif %}
      {%- endfor %}
)
    {%- endset %}
    create or replace table {{ relation.render() }}
    {{ adapter.with_indexes(columns, model['config']) }} {{ adapter.storage_clause(model['config']) }}
    {%- if rows is not none %} as select * from {{ rows.render() }}{% endif %}
  {% endset %}
  {% call statement('_', auto_begin=False) %}{{ sql }}{% endcall %}
  {{ return(sql) }}
{% endmacro %}

{# Do nothing if the table can take the file's rows: `load_csv_rows` then exchanges those that differ.
   Otherwise the file is loaded beside the table, which is replaced in one statement. #}
{% macro olapdb__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {%- set beside = make_intermediate_relation(old_relation) -%}
  {% do drop_relation_if_exists(load_cached_relation(beside)) %}
  {% if agate_table.rows | length == 0 %}
    {{ return(olapdb_create_seed(old_relation, model, agate_table)) }}
  {% elif full_refresh or not adapter.seed_fits(old_relation, agate_table, model['config'].get('column_types', {})) %}
    {{ return(olapdb_create_seed(beside, model, agate_table)) }}
  {% endif %}
  {{ return('') }}
{% endmacro %}

{% macro olapdb__load_csv_rows(model, agate_table) %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set existing = load_cached_relation(this) -%}
  {% if existing is none %}
    {{ return(adapter.load_seed(target, agate_table)) }}
  {% elif should_full_refresh() or not adapter.seed_fits(existing, agate_table, model['config'].get('column_types', {})) %}
    {%- set beside = make_intermediate_relation(target) -%}
    {%- set sql = adapter.load_seed(beside, agate_table) -%}
    {% do olapdb_create_seed(target, model, agate_table, rows=beside) %}
    {% do adapter.drop_relation(beside) %}
    {% do adapter.after_replacement(existing, target) %}
    {{ return(sql) }}
  {% endif %}
  {%- set sql = adapter.load_seed(target, agate_table, exchange=true) -%}
  {% do adapter.after_replacement(existing, target) %}
  {{ return(sql) }}
{% endmacro %}
