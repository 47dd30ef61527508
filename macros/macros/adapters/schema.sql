{% macro olapdb__list_schemas(database) %}
  {% call statement('list_schemas', fetch_result=True, auto_begin=False) %}
    select name from system.databases where name not in ('system', 'information_schema', 'INFORMATION_SCHEMA')
  {% endcall %}
  {{ return(load_result('list_schemas').table) }}
{% endmacro %}

{% macro olapdb__create_schema(relation) %}
  {% call statement('create_schema', auto_begin=False) %}
    create database if not exists {{ relation.without_identifier() }}
  {% endcall %}
{% endmacro %}

{% macro olapdb__drop_schema(relation) %}
  {% call statement('drop_schema', auto_begin=False) %}
    drop database if exists {{ relation.without_identifier() }} cascade
  {% endcall %}
{% endmacro %}

{# Names have two levels: dbt's database is a constant that SQL never contains. #}
{% macro olapdb__generate_database_name(custom_database_name=none, node=none) %}
  {% if custom_database_name and custom_database_name != target.database %}
    {{ exceptions.raise_compiler_error(
      "olapdb has names of two levels, so database='" ~ custom_database_name
      ~ "' means nothing; use schema.") }}
  {% endif %}
  {{ return(target.database) }}
{% endmacro %}

{# Called while dbt parses, so that a name that dbt itself gives to relations is refused by any command. #}
{% macro olapdb__generate_alias_name(custom_alias_name=none, node=none) %}
  {%- set alias = default__generate_alias_name(custom_alias_name, node) | trim -%}
  {%- set problem = adapter.reserved_suffix(alias, node.name, node.resource_type) -%}
  {% if problem %}
    {{ exceptions.raise_compiler_error(problem, node) }}
  {% endif %}
  {{ return(alias) }}
{% endmacro %}
