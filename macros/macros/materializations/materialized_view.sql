{# dbt's name for an `incremental_mv`: the same relations and rules. `on_configuration_change` says what
   a changed definition does, where `on_definition_change` is not set. With the config `refresh` it is one
   relation, a view that is refreshed on a schedule. #}
{% materialization materialized_view, adapter='olapdb' %}
  {%- if adapter.is_refreshed(model.config) -%}
    {{ return(olapdb_refreshable()) }}
  {%- endif -%}
  {%- set relations = context['materialization_incremental_mv_olapdb']() -%}
  {%- if (load_result('main').response | string).startswith('REBUILD') -%}
    {{ log("Applying REPLACE to: " ~ this.render()) }}
  {%- endif -%}
  {{ return(relations) }}
{% endmaterialization %}

{% macro olapdb_refreshable() %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='materialized_view') -%}

  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% if existing is not none and existing.type != 'materialized_view' %}
    {% do adapter.check_replacement(existing, 'view') %}
  {% endif %}
  {%- set outcome = adapter.run_refreshable(target, sql, model, should_full_refresh()) -%}
  {% do write(outcome.code) %}
  {% do store_result('main', response=outcome.response) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmacro %}
