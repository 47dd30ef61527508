{# Functions of dbt (`functions/` of a project). A function belongs to its schema, an olapdb database, and
   is called as `schema`.`name`(…). The body in SQL is one expression, or SELECT and one expression. #}

{% macro olapdb__formatted_scalar_function_args_sql() %}
  {%- set arguments = [] -%}
  {%- for argument in model.arguments -%}
    {%- set default = argument.get('default_value') -%}
    {%- do arguments.append(
      adapter.quote(argument.name) ~ ' ' ~ argument.data_type
      ~ ('' if default is none else ' DEFAULT ' ~ default)) -%}
  {%- endfor -%}
  {{ arguments | join(', ') }}
{% endmacro %}

{% macro olapdb__scalar_function_python(target_relation) %}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  {{ olapdb_python_function() }}
{% endmacro %}

{% macro olapdb__aggregate_function_sql(target_relation) %}
  CREATE OR REPLACE AGGREGATE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  RETURNS {{ model.returns.data_type }}
  {{ scalar_function_volatility_sql() }}
  AS
  {{ scalar_function_body_sql() }};
{% endmacro %}

{% macro olapdb__aggregate_function_python(target_relation) %}
  CREATE OR REPLACE AGGREGATE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  {{ olapdb_python_function() }}
{% endmacro %}

{# What follows the parameters of a function in Python. The config `vectorized` passes Arrow arrays. #}
{% macro olapdb_python_function() %}
  RETURNS {{ model.returns.data_type }}
  LANGUAGE PYTHON
  {{ scalar_function_volatility_sql() }}
  {{ get_function_python_options() }}
  {{ 'VECTORIZED' if model.config.get('vectorized') }}
  AS {{ adapter.string_literal(model.compiled_code) }};
{% endmacro %}
