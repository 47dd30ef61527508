{# Features of dbt that olapdb lacks: refused before anything is created. #}
{% materialization materialized_view, adapter='olapdb' %}
  {{ exceptions.raise_compiler_error(
    "A model that is maintained by INSERTs is materialized='incremental_mv' in olapdb; see docs/dbt.md.") }}
{% endmaterialization %}
