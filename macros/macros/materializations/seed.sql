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

{# Load the file's rows. The result `loaded` says whether they were there already. #}
{% macro olapdb__load_csv_rows(model, agate_table) %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set existing = load_cached_relation(this) -%}
  {% if existing is none %}
    {{ return(adapter.load_seed(target, agate_table).statement) }}
  {% elif should_full_refresh() or not adapter.seed_fits(existing, agate_table, model['config'].get('column_types', {})) %}
    {%- set beside = make_intermediate_relation(target) -%}
    {%- set loaded = adapter.load_seed(beside, agate_table) -%}
    {% do olapdb_create_seed(target, model, agate_table, rows=beside) %}
    {% do adapter.drop_relation(beside) %}
    {% do adapter.after_replacement(existing, target) %}
    {{ return(loaded.statement) }}
  {% endif %}
  {%- set loaded = adapter.load_seed(target, agate_table, exchange=true) -%}
  {% do store_result('loaded', response='CHANGED' if loaded.changed else 'NO CHANGE') %}
  {% do adapter.after_replacement(existing, target) %}
  {{ return(loaded.statement) }}
{% endmacro %}

{# dbt's materialization, but the result of a file that changed nothing says so. #}
{% materialization seed, adapter='olapdb' %}
  {%- set old_relation = load_cached_relation(this) -%}
  {%- set is_table = old_relation is not none and old_relation.is_table -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {%- do adapter.check_seed_types(this, agate_table, model['config'].get('column_types') or {}) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% set create_sql = "" %}
  {% if old_relation is not none and old_relation.is_view %}
    {% do exceptions.raise_compiler_error("Cannot seed to '{}', it is a view".format(old_relation.render())) %}
  {% elif is_table %}
    {% set create_sql = reset_csv_table(model, should_full_refresh(), old_relation, agate_table) %}
  {% else %}
    {% set create_sql = create_csv_table(model, agate_table) %}
  {% endif %}

  {% set rows = agate_table.rows | length %}
  {% set load_sql = load_csv_rows(model, agate_table) if rows > 0 else "" %}
  {% set loaded = load_result('loaded') %}
  {% set code = 'CREATE' if should_full_refresh() else 'INSERT' %}
  {% set is_unchanged = loaded is not none and loaded.response == 'NO CHANGE' %}
  {% set message = 'NO CHANGE' if is_unchanged else code ~ ' ' ~ rows %}
  {% call noop_statement('main', message, code, 0 if is_unchanged else rows) %}
    {{ get_csv_sql(create_sql, load_sql) }};
  {% endcall %}

  {% do apply_grants(target_relation, config.get('grants')) %}
  {% do persist_docs(target_relation, model) %}
  {% if should_full_refresh() or not is_table %}
    {% do create_indexes(target_relation) %}
  {% endif %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
