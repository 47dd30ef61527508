{# Features of dbt that olapdb lacks: refused before anything is created. #}
{% materialization snapshot, adapter='olapdb' %}
  {{ exceptions.raise_compiler_error(
    "olapdb has no snapshots. Keep the changes as rows in a table of their own (an incremental model "
    ~ "appends), or the newest row of each key with engine='ReplacingMergeTree'.") }}
{% endmaterialization %}

{% materialization materialized_view, adapter='olapdb' %}
  {{ exceptions.raise_compiler_error(
    "A model that is maintained by INSERTs is materialized='incremental_mv' in olapdb; see docs/dbt.md.") }}
{% endmaterialization %}
