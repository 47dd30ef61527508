{# The tests of incremental_mv models; docs/dbt.md has their arguments. Each row that fails stands for a
   partition; the last of very many rows for all further ones, which `slices` counts. #}

{# The model equals a recomputation from its source, no row was written into it directly, no row of its
   source is missing, and readers read what was compared. #}
{% test reconciled(model, partition=none, partitions=none, sample=none, engine=none) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_reconciled(model, partition, engine, partitions, sample) }}
{% endtest %}

{# What users read equals the answer of the source, compared by SQL. #}
{% test reconciles_with_source(model, partitions=none, sample=none, tolerance=none, where=none) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_test('reconciles_with_source', model,
       {'partitions': partitions, 'sample': sample, 'tolerance': tolerance, 'where': where}) }}
{% endtest %}

{# The trigger has seen all rows of its source, up to max_rows. #}
{% test covers_source(model, partitions=none, max_rows=0) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_test('covers_source', model, {'partitions': partitions, 'max_rows': max_rows}) }}
{% endtest %}

{# No row of the target was written directly. #}
{% test no_bypass_writes(model, partitions=none) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_test('no_bypass_writes', model, {'partitions': partitions}) }}
{% endtest %}

{# No slice is stale, and nobody altered the trigger or the read view. #}
{% test not_stale(model, partitions=none) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_test('not_stale', model, {'partitions': partitions}) }}
{% endtest %}

{# Each partition has a proof that holds and is younger than the interval: {count: 2, period: day}. #}
{% test proven_within(model, interval, partitions=none) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_test('proven_within', model, {'interval': interval, 'partitions': partitions}) }}
{% endtest %}

{% macro olapdb_reconciled(model, partition=none, engine=none, partitions=none, sample=none) %}
  {{ config(fail_calc='coalesce(sum(slices), 0)') }}
  {{ olapdb_test('reconciled', model,
       {'partitions': [partition] if partition is not none else partitions,
        'sample': sample, 'engine': engine}) }}
{% endmacro %}

{% macro olapdb_test(test, model, arguments) %}
  {%- if execute -%}
    {#- dbt compile and dbt docs must not start a recomputation. -#}
    {%- set running = flags.WHICH in ('test', 'build', 'retry') -%}
    {{ adapter.incremental_mv_test(test, model, arguments, running) }}
  {%- else -%}
    select 1 as model where 1 = 0
  {%- endif -%}
{% endmacro %}
