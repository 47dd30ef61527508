{# dbt's cross-database macros whose default SQL ClickHouse does not accept. #}

{% macro olapdb__hash(field) %}lower(hex(MD5(toString({{ field }})))){% endmacro %}

{% macro olapdb__split_part(string_text, delimiter_text, part_number) %}
  if(isNull({{ string_text }}), null,
    splitByString({{ delimiter_text }}, assumeNotNull({{ string_text }}))[{{ part_number }}])
{% endmacro %}

{% macro olapdb__bool_or(expression) %}toBool(max({{ expression }})){% endmacro %}

{% macro olapdb__safe_cast(field, type) %}
  accurateCastOrNull({{ field }}, {{ adapter.string_literal(type) }})
{% endmacro %}

{% macro olapdb__date(year, month, day) %}
  toDate({{ adapter.string_literal("%04d-%02d-%02d" % (year, month, day)) }})
{% endmacro %}

{% macro olapdb__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {% if order_by_clause and execute %}
    {{ exceptions.raise_compiler_error(
      "listagg with an order is not there; sort the rows in a subquery, or join the items of "
      ~ "arraySort(groupArray(…)) by arrayStringConcat.") }}
  {% endif %}
  {%- set items = "groupArray(" ~ limit_num ~ ")" if limit_num else "groupArray" -%}
  arrayStringConcat({{ items }}({{ measure }}), {{ delimiter_text }})
{% endmacro %}

{% macro olapdb__array_construct(inputs, data_type) %}[{{ inputs | join(', ') }}]{% endmacro %}

{% macro olapdb__array_append(array, new_element) %}arrayPushBack({{ array }}, {{ new_element }}){% endmacro %}

{% macro olapdb__array_concat(array_1, array_2) %}arrayConcat({{ array_1 }}, {{ array_2 }}){% endmacro %}

{% macro olapdb__date_spine(datepart, start_date, end_date) %}
  select {{ dbt.dateadd(datepart, "number", start_date) }} as date_{{ datepart }}
  from numbers(toUInt64(greatest({{ dbt.datediff(start_date, end_date, datepart) }}, 0)))
{% endmacro %}
