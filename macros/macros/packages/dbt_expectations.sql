{# Macros of dbt_expectations whose SQL is not ClickHouse's. The adapter puts them into the package's dispatch. #}

{% macro olapdb__quantile(field, quantile, partition) -%}
  quantileExactInclusive({{ quantile }})({{ field }})
  {%- if partition %} over (partition by {{ partition }}){% endif -%}
{%- endmacro %}

{% macro olapdb__rand() -%}randCanonical(){%- endmacro %}

{# The tests ask whether there is a match. The pattern is taken as it is written, without escapes of SQL. #}
{% macro olapdb__regexp_instr(source_value, regexp, position, occurrence, is_raw, flags) %}
  {%- if position != 1 or occurrence != 1 -%}
    {% do exceptions.raise_compiler_error(
      "dbt_expectations.regexp_instr looks for the first match of the whole text on olapdb: position and "
      ~ "occurrence are 1, not " ~ position ~ " and " ~ occurrence ~ ".") %}
  {%- endif -%}
  {%- set flags = flags | replace('c', '') -%}{# case-sensitive, which patterns are #}
  {%- set pattern = "(?" ~ flags ~ ")" ~ regexp if flags else regexp -%}
  toUInt8(match({{ source_value }}, {{ adapter.string_literal(pattern) }}))
{% endmacro %}
