{# A later run of a built-in strategy is one statement: nothing is left behind by a run that is killed.
   A strategy of the project's own gets the model's rows in a temporary table, as in other adapters. #}
{% materialization incremental, adapter='olapdb', supported_languages=['sql', 'python'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set strategy = adapter.incremental_strategy(model.config) -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(
        config.get('on_schema_change'), default='ignore') -%}
  {%- set temporary = make_temp_relation(target) -%}
  {% if strategy in ('delete+insert', 'merge') and not config.get('unique_key') %}
    {% do exceptions.warn(this ~ " has incremental_strategy='" ~ strategy ~ "' and no unique_key, so that its "
         ~ "runs append and replace no row. Set unique_key, or incremental_strategy='append'.") %}
  {% endif %}
  {% if strategy in ('insert_overwrite', 'microbatch') and config.get('unique_key') %}
    {% do exceptions.warn(this ~ " has a unique_key, which incremental_strategy='" ~ strategy ~ "' does not use: "
         ~ ("the partitions" if strategy == 'insert_overwrite' else "the time of the batch")
         ~ " of the run's rows decide which rows leave. Remove it.") %}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set python_rows = olapdb_python_rows(target, compiled_code) -%}
  {%- set sql = adapter.batch_rows(model, olapdb_select_rows(python_rows, compiled_code)) -%}
  {% do drop_relation_if_exists(load_cached_relation(temporary)) %}
  {% if existing is none or not existing.is_table or should_full_refresh() %}
    {% if adapter.is_builtin_strategy(strategy) and not config.get('sql_header') %}
      {% do adapter.check_incremental(this, model.config, sql) %}
    {% endif %}
    {% do olapdb_build_table(existing, target, sql) %}
  {% elif adapter.keeps_for_triggers(existing, sql) %}
    {% do olapdb_keep() %}
  {% else %}
    {%- set is_own = not adapter.is_builtin_strategy(strategy) -%}
    {% if is_own %}
      {% do run_query(get_create_table_as_sql(True, temporary, sql)) %}
    {% endif %}
    {%- set columns = olapdb_sync_columns(on_schema_change, existing, sql) -%}
    {%- set change = strategy_macro({
          'target_relation': target,
          'temp_relation': temporary if is_own else '(\n' ~ sql ~ '\n) as DBT_INTERNAL_SOURCE',
          'unique_key': config.get('unique_key'),
          'dest_columns': columns,
          'incremental_predicates': config.get('predicates') or config.get('incremental_predicates'),
        }) -%}
    {% call statement('main') %}
      {{ config.get('sql_header') if config.get('sql_header') is not none }}
      {{ change }}
    {% endcall %}
    {% if is_own %}
      {% do adapter.drop_relation(temporary) %}
    {% endif %}
    {% do adapter.after_replacement(existing, target) %}
  {% endif %}
  {% do drop_relation_if_exists(python_rows) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{# Bring the table's columns in line with the query's, as `on_schema_change` says. Return the columns to
   insert, which both have. #}
{% macro olapdb_sync_columns(on_schema_change, existing, sql) %}
  {%- set present = adapter.get_columns_in_relation(existing) -%}
  {%- set queried = olapdb_described(sql) -%}
  {%- set change = adapter.schema_change(present, queried) -%}
  {% if on_schema_change == 'fail' and change.schema_changed %}
    {% do exceptions.raise_compiler_error(adapter.schema_change_refused(existing, change)) %}
  {% elif on_schema_change == 'ignore' %}
    {{ return(adapter.ignored_columns(existing, change)) }}
  {% elif change.schema_changed %}
    {% do sync_column_schemas(on_schema_change, existing, change) %}
  {% endif %}
  {{ return(queried) }}
{% endmacro %}

{# Add, drop and retype the columns of an incremental table by one statement: all of them or none. #}
{% macro olapdb__sync_column_schemas(on_schema_change, target_relation, schema_changes_dict) %}
  {%- set sql = adapter.schema_change_sql(on_schema_change, target_relation, schema_changes_dict) -%}
  {% if sql %}
    {% do run_query(sql) %}
    {% do log('on_schema_change ' ~ on_schema_change ~ ': ' ~ sql) %}
  {% endif %}
{% endmacro %}
