{% macro olapdb__create_csv_table(model, agate_table) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {% set sql %}
    create table {{ this.render() }} (
      {%- for name in agate_table.column_names %}
        {{ adapter.quote(name | string) }} {{ overrides.get(name, adapter.convert_type(agate_table, loop.index0)) }}
        {%- if not loop.last %},{% endif %}
      {%- endfor %}
    ) {{ adapter.storage_clause(model['config']) }}
  {% endset %}
  {% call statement('_', auto_begin=False) %}{{ sql }}{% endcall %}
  {{ return(sql) }}
{% endmacro %}

{# The table is filled again where it has the seed's columns, and made anew otherwise. #}
{% macro olapdb__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {% if full_refresh or not adapter.seed_fits(old_relation, agate_table, overrides) %}
    {% do adapter.drop_relation(old_relation) %}
    {{ return(create_csv_table(model, agate_table)) }}
  {% endif %}
  {% do adapter.truncate_relation(old_relation) %}
  {{ return("truncate table " ~ old_relation.render()) }}
{% endmacro %}

{% macro olapdb__load_csv_rows(model, agate_table) %}
  {{ return(adapter.load_seed(this.incorporate(type='table'), agate_table)) }}
{% endmacro %}
