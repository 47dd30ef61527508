{# dbt's own materialization with another change of an existing snapshot: one statement, which ends
   old versions and adds new ones in one commit, in place of a staging table and a MERGE. #}
{% materialization snapshot, adapter='olapdb' %}
  {%- set strategy_name = config.get('strategy') -%}
  {%- if model.resource_type != 'snapshot' -%}
    {% do exceptions.raise_compiler_error("materialized='snapshot' is of snapshots, not of models: move the query to "
         ~ "a file of the folder snapshots, or name the model as the relation of a snapshot in YAML.") %}
  {%- endif -%}
  {%- set target_exists, target = get_or_create_relation(
        database=model.database, schema=model.schema,
        identifier=model.get('alias', model.get('name')), type='table') -%}
  {%- if not target.is_table -%}
    {% do exceptions.relation_wrong_type(target, 'table') %}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% if not config.get('sql_header') %}
    {% do adapter.check_snapshot(target, model['compiled_code'], model['config']) %}
  {% endif %}
  {%- set strategy = strategy_dispatch(strategy_name)(
        model, "snapshotted_data", "source_data", model['config'], target_exists) -%}
  {%- set meta = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}

  {% if not target_exists %}
    {%- set first = build_snapshot_table(strategy, model['compiled_code']) -%}
    {% call statement('main') %}{{ create_table_as(False, target, first) }}{% endcall %}
    {% do create_indexes(target) %}
  {% elif adapter.keeps_snapshot(target, sql, strategy) %}
    {% do olapdb_keep() %}
  {% else %}
    {{ adapter.assert_valid_snapshot_target_given_strategy(target, meta, strategy) }}
    {%- set current = config.get('dbt_valid_to_current') or '' -%}
    {%- set deleted_id = snapshot_hash_arguments(['`dbt_old_' ~ meta.dbt_scd_id ~ '`', snapshot_get_time()]) -%}
    {%- set change = adapter.snapshot_change(
          target, sql, strategy, meta, snapshot_get_time(), current, deleted_id) -%}
    {% call statement('main') %}{{ change }}{% endcall %}
  {% endif %}

  {% do apply_grants(target, config.get('grants'), should_revoke=should_revoke(target_exists, full_refresh_mode=False)) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{# With microseconds: two runs in one second make two versions. #}
{% macro olapdb__snapshot_get_time() %}now64(6){% endmacro %}

{% macro olapdb__snapshot_string_as_time(timestamp) %}
  {{ return("toDateTime64(" ~ adapter.string_literal(timestamp) ~ ", 6)") }}
{% endmacro %}

{% macro olapdb__snapshot_hash_arguments(args) %}
  lower(hex(MD5(concat(
    {%- for arg in args %}
      ifNull(toString({{ arg }}), ''){{ ", '|'," if not loop.last else ", ''" }}
    {%- endfor %}
  ))))
{% endmacro %}
