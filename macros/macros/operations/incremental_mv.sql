{# dbt run-operation repair --args '{models: [m], discard_bypass: true}' #}
{% macro repair(models=none, discard_bypass=false, engine=none) %}
  {% do olapdb_operation('repair', models, {'discard_bypass': discard_bypass, 'engine': engine}) %}
{% endmacro %}

{# dbt run-operation backfill --args '{models: [m]}' #}
{% macro backfill(models=none, engine=none) %}
  {% do olapdb_operation('backfill', models, {'engine': engine}) %}
{% endmacro %}

{# dbt run-operation reconcile --args '{models: [m]}' #}
{% macro reconcile(models=none, engine=none) %}
  {% do olapdb_operation('reconcile', models, {'engine': engine}) %}
{% endmacro %}

{# dbt run-operation status #}
{% macro status(models=none) %}
  {% do olapdb_operation('status', models, {}) %}
{% endmacro %}

{# dbt run-operation generate_reconciliation_tests: write a test for each model without one #}
{% macro generate_reconciliation_tests(folder=none) %}
  {% if execute %}
    {% set written = adapter.write_reconciliation_tests(graph.nodes.values() | list, folder) %}
    {% for path in written %}{% do log("Wrote " ~ path, info=True) %}{% endfor %}
    {% if not written %}
      {% do log("Every incremental_mv model has a reconciliation test.", info=True) %}
    {% endif %}
  {% endif %}
{% endmacro %}

{% macro olapdb_operation(operation, models, options) %}
  {% if execute %}
    {% set lines = adapter.incremental_mv_operation(
         operation, graph.nodes.values() | list, models, options) %}
    {% for line in lines %}{% do log(line, info=True) %}{% endfor %}
  {% endif %}
{% endmacro %}
