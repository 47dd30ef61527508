{% macro olapdb__create_csv_table(model, agate_table) %}
  {{ return(olapdb_create_seed(this, model, agate_table)) }}
{% endmacro %}

{% macro olapdb_create_seed(relation, model, agate_table) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {% set sql %}
    {%- set columns %}(
      {%- for name in agate_table.column_names %}
        {{ adapter.quote(name | string) }} {{ overrides.get(name, adapter.convert_type(agate_table, loop.index0)) }}
        {%- if not loop.last %},{% endif %}
      {%- endfor %}
)
    {%- endset %}
    create table {{ relation.render() }} {{ adapter.with_indexes(columns, model['config']) }}
    {{ adapter.storage_clause(model['config']) }}
  {% endset %}
  {% call statement('_', auto_begin=False) %}{{ sql }}{% endcall %}
  {{ return(sql) }}
{% endmacro %}

{# Load the file beside the existing table, then apply the differing rows to that table. #}
{% macro olapdb__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {%- set new = make_intermediate_relation(old_relation) -%}
  {% do adapter.drop_relation(new) %}
  {{ return(olapdb_create_seed(new, model, agate_table)) }}
{% endmacro %}

{% macro olapdb__load_csv_rows(model, agate_table) %}
  {%- set target = this.incorporate(type='table') -%}
  {% if load_cached_relation(this) is none %}
    {{ return(adapter.load_seed(target, agate_table)) }}
  {% endif %}
  {{ return(adapter.reload_seed(
       target, make_intermediate_relation(target), agate_table,
       model['config'].get('column_types', {}), should_full_refresh())) }}
{% endmacro %}
