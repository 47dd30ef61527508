{# Build a target of states, a trigger and a read view from one SELECT; see docs/dbt.md. #}
{% materialization incremental_mv, adapter='olapdb' %}
  {%- set target = this.incorporate(type='view') -%}

  {% do olapdb_warn_untested(model) %}

  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
  {% endif %}

  {{ olapdb_run_hooks(pre_hooks, target, False) }}
  {{ olapdb_run_hooks(pre_hooks, target, True) }}

  {%- set outcome = adapter.run_incremental_mv(
        target, sql, model.config, model, {'full_refresh': should_full_refresh()}) -%}
  {% do write(outcome.code) %}
  {% do store_result('main', response=outcome.response) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ olapdb_run_hooks(post_hooks, target, True) }}
  {{ adapter.commit() }}
  {{ olapdb_run_hooks(post_hooks, target, False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{# Run hooks of an `incremental_mv`: what they write into `this` goes to its target. #}
{% macro olapdb_run_hooks(hooks, relation, inside_transaction) %}
  {% for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) %}
    {% set sql = adapter.hook_to_run(render(hook.get('sql')) | trim, relation) %}
    {{ run_hooks([{'sql': sql, 'transaction': inside_transaction}], inside_transaction) }}
  {% endfor %}
{% endmacro %}

{% macro olapdb_warn_untested(model) %}
  {% if adapter.is_untested(model, graph.nodes) %}
    {% do exceptions.warn(
      model.name ~ " has no test that reconciles it with its source. Add `data_tests: [reconciled]` "
      ~ "to it in a yml file, or write the tests of all such models by "
      ~ "`dbt run-operation generate_reconciliation_tests`.") %}
  {% endif %}
{% endmacro %}
