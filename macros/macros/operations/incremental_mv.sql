{# The operations on incremental_mv models; docs/dbt.md says what each does. All take

     models    names, aliases, unique ids or selectors (one, or a list)
     select    selectors as of `dbt run --select`: tag:x, path:models/x, +model, …
     exclude   likewise

   and work on all models without any. They log a table, and fail if they failed for any model. #}

{# dbt run-operation plan --args '{select: "tag:hourly"}' #}
{% macro plan(models=none, select=none, exclude=none, full_refresh=false) %}
  {% do olapdb_operation('plan', models, select, exclude, {'full_refresh': full_refresh}) %}
{% endmacro %}

{# dbt run-operation status #}
{% macro status(models=none, select=none, exclude=none) %}
  {% do olapdb_operation('status', models, select, exclude, {}) %}
{% endmacro %}

{# dbt run-operation backfill --args '{models: [m]}' #}
{% macro backfill(models=none, select=none, exclude=none, engine=none) %}
  {% do olapdb_operation('backfill', models, select, exclude, {'engine': engine}) %}
{% endmacro %}

{# dbt run-operation replay --args '{models: [m], where: "day >= 2024-01-01"}' #}
{% macro replay(models=none, select=none, exclude=none, partition=none, partitions=none, where=none,
                since=none, stale=false, all=false, discard_bypass=false, engine=none) %}
  {% do olapdb_operation('replay', models, select, exclude, {
       'partition': partition, 'partitions': partitions, 'where': where, 'since': since,
       'stale': stale, 'all': all, 'discard_bypass': discard_bypass, 'engine': engine}) %}
{% endmacro %}

{# dbt run-operation reconcile --args '{models: [m], partitions: ["202401"]}' #}
{% macro reconcile(models=none, select=none, exclude=none, partition=none, partitions=none, engine=none) %}
  {% do olapdb_operation('reconcile', models, select, exclude,
       {'partition': partition, 'partitions': partitions, 'engine': engine}) %}
{% endmacro %}

{# dbt run-operation repair --args '{models: [m], discard_bypass: true}' #}
{% macro repair(models=none, select=none, exclude=none, discard_bypass=false, engine=none) %}
  {% do olapdb_operation('repair', models, select, exclude,
       {'discard_bypass': discard_bypass, 'engine': engine}) %}
{% endmacro %}

{# dbt run-operation adopt --args '{models: [m]}' #}
{% macro adopt(models=none, select=none, exclude=none, engine=none) %}
  {% do olapdb_operation('adopt', models, select, exclude, {'engine': engine}) %}
{% endmacro %}

{# dbt run-operation rollback --args '{models: [m]}' #}
{% macro rollback(models=none, select=none, exclude=none) %}
  {% do olapdb_operation('rollback', models, select, exclude, {}) %}
{% endmacro %}

{# dbt run-operation drop_orphans [--args '{confirm: true, schemas: [old_schema]}'] #}
{% macro drop_orphans(confirm=false, dry_run=none, schemas=none) %}
  {% do olapdb_operation('drop_orphans', none, none, none,
       {'confirm': confirm, 'dry_run': dry_run, 'schemas': schemas}) %}
{% endmacro %}

{# dbt run-operation generate_reconciliation_tests: a checked-in test for each model without one #}
{% macro generate_reconciliation_tests(folder=none) %}
  {% if execute %}
    {% set lines = adapter.write_reconciliation_tests(graph.nodes.values() | list, folder) %}
    {% for line in lines %}{% do log(line, info=True) %}{% endfor %}
    {% if not lines %}
      {% do log("The reconciliation test of every incremental_mv model is current.", info=True) %}
    {% endif %}
  {% endif %}
{% endmacro %}

{% macro olapdb_operation(operation, models, select, exclude, options) %}
  {% if execute %}
    {% do options.update({'models': models, 'select': select, 'exclude': exclude}) %}
    {% do adapter.incremental_mv_operation(operation, options) %}
  {% endif %}
{% endmacro %}
