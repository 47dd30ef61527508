{# dbt's own materialization with two changes: the table used as a temporary one is dropped, and a full
   refresh swaps the new table in atomically. #}
{% materialization incremental, adapter='olapdb', supported_languages=['sql', 'python'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set strategy = adapter.get_incremental_strategy_macro(
        context, config.get('incremental_strategy') or 'default') -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(
        config.get('on_schema_change'), default='ignore') -%}

  {% if config.get('unique_key') and (config.get('incremental_strategy') or 'append') == 'append' %}
    {{ exceptions.raise_compiler_error(
      "unique_key means nothing to incremental models here, which append: rows of a known key would be "
      ~ "there twice. Remove it, or set engine='ReplacingMergeTree' with order_by=" ~ config.get('unique_key') | tojson
      ~ " in its place and read the model with FINAL.") }}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set python_rows = olapdb_python_rows(target, compiled_code) -%}
  {%- set sql = olapdb_select_rows(python_rows, compiled_code) -%}
  {% if existing is none or not existing.is_table or should_full_refresh() %}
    {% do olapdb_build_table(existing, target, sql) %}
  {% else %}
    {%- set rows = make_temp_relation(target) -%}
    {% do run_query(get_create_table_as_sql(True, rows, sql)) %}
    {%- set columns = process_schema_changes(on_schema_change, rows, existing)
          or adapter.get_columns_in_relation(existing) -%}
    {%- set append = strategy({
          'target_relation': target,
          'temp_relation': rows,
          'unique_key': config.get('unique_key'),
          'dest_columns': columns,
          'incremental_predicates': config.get('predicates') or config.get('incremental_predicates'),
        }) -%}
    {% call statement('main') %}{{ append }}{% endcall %}
    {% do adapter.drop_relation(rows) %}
  {% endif %}
  {% do drop_relation_if_exists(python_rows) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
