{# data_tests: [reconciled] on an incremental_mv model: recompute it from its source, and fail for each
   slice that differs, holds rows written into the target directly, or lacks rows of the source.
   Arguments: partition (id of one partition of the target), engine (in_process or spark). #}
{% test reconciled(model, partition=none, engine=none) %}
  {{ olapdb_reconciled(model, partition, engine) }}
{% endtest %}

{% macro olapdb_reconciled(model, partition=none, engine=none) %}
  {%- if execute -%}
    {#- dbt compile and dbt docs must not start a recomputation. -#}
    {%- set running = flags.WHICH in ('test', 'build', 'retry') -%}
    {{ adapter.reconciliation_sql(model, partition, running, engine) }}
  {%- else -%}
    select 1 as model where 1 = 0
  {%- endif -%}
{% endmacro %}
