{# dbt's name for an `incremental_mv`: the same relations and rules. `on_configuration_change` says what
   a changed definition does, where `on_definition_change` is not set. #}
{% materialization materialized_view, adapter='olapdb' %}
  {%- set relations = context['materialization_incremental_mv_olapdb']() -%}
  {%- if (load_result('main').response | string).startswith('REBUILD') -%}
    {{ log("Applying REPLACE to: " ~ this.render()) }}
  {%- endif -%}
  {{ return(relations) }}
{% endmaterialization %}
