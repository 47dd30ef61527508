{# data_tests: [reconciled] on an incremental_mv model: recomputes it from its source and fails for
   each slice that differs, has rows written by hand, or lacks rows of the source.
   Arguments: partition (id of one partition of the target), engine (in_process or spark). #}
{% test reconciled(model, partition=none, engine=none) %}
  {{ olapdb_reconciled(model, partition, engine) }}
{% endtest %}

{% macro olapdb_reconciled(model, partition=none, engine=none) %}
  {%- if execute -%}
    {#- compiling and documenting must not start a recomputation -#}
    {%- set running = flags.WHICH in ('test', 'build', 'retry') -%}
    {{ adapter.reconciliation_sql(model, partition, running, engine) }}
  {%- else -%}
    select 1 as model where 1 = 0
  {%- endif -%}
{% endmacro %}
