{# Build a target of states, a trigger and a read view from one SELECT; see docs/dbt.md. #}
{% materialization incremental_mv, adapter='olapdb' %}
  {%- set target = this.incorporate(type='view') -%}

  {% do olapdb_warn_untested(model) %}

  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set outcome = adapter.run_incremental_mv(
        target, sql, model.config, model, {'full_refresh': should_full_refresh()}) -%}
  {% do write(outcome.code) %}
  {% do store_result('main', response=outcome.response) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{% macro olapdb_warn_untested(model) %}
  {% if model.unique_id in adapter.untested_models(graph.nodes.values() | list) %}
    {% do exceptions.warn(
      model.name ~ " has no test that reconciles it with its source. Add `data_tests: [reconciled]` "
      ~ "to it in a yml file, or write the tests of all such models by "
      ~ "`dbt run-operation generate_reconciliation_tests`.") %}
  {% endif %}
{% endmacro %}
