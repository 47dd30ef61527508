{# dbt's cross-database macros whose default SQL ClickHouse does not accept. #}

{% macro olapdb__hash(field) %}lower(hex(MD5(toString({{ field }})))){% endmacro %}

{% macro olapdb__split_part(string_text, delimiter_text, part_number) %}
  if(isNull({{ string_text }}), null,
    splitByString({{ delimiter_text }}, assumeNotNull({{ string_text }}))[{{ part_number }}])
{% endmacro %}

{# A difference of lengths may be of a type that is no integer. #}
{% macro olapdb__right(string_text, length_expression) %}
  right({{ string_text }}, toInt64({{ length_expression }}))
{% endmacro %}

{# An OVER may follow. #}
{% macro olapdb__bool_or(expression) %}max(toBool({{ expression }})){% endmacro %}

{% macro olapdb__safe_cast(field, type) %}
  accurateCastOrNull({{ field }}, {{ adapter.string_literal(type) }})
{% endmacro %}

{% macro olapdb__date(year, month, day) %}
  toDate({{ adapter.string_literal("%04d-%02d-%02d" % (year, month, day)) }})
{% endmacro %}

{% macro olapdb__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {{ adapter.listagg(measure, delimiter_text, order_by_clause, limit_num) }}
{% endmacro %}

{# Literals of dates: functions of dates take no strings. #}
{% macro olapdb__datediff(first_date, second_date, datepart) %}
  dateDiff('{{ datepart }}', {{ adapter.dated(first_date) }}, {{ adapter.dated(second_date) }})
{% endmacro %}

{% macro olapdb__dateadd(datepart, interval, from_date_or_timestamp) %}
  dateAdd({{ datepart }}, {{ interval }}, {{ adapter.dated(from_date_or_timestamp) }})
{% endmacro %}

{% macro olapdb__date_trunc(datepart, date) %}
  date_trunc('{{ datepart }}', {{ adapter.dated(date) }})
{% endmacro %}

{# toDate keeps NULL, which a cast to Date refuses. #}
{% macro olapdb__last_day(date, datepart) %}
  toDate({{ dbt.dateadd('day', '-1', dbt.dateadd(datepart, '1', dbt.date_trunc(datepart, date))) }})
{% endmacro %}

{# A comparison is a UInt8 here: its text would be '1'. toString keeps NULL. #}
{% macro olapdb__cast_bool_to_text(field) %}toString(toBool({{ field }})){% endmacro %}

{% macro olapdb__array_construct(inputs, data_type) %}[{{ inputs | join(', ') }}]{% endmacro %}

{% macro olapdb__array_append(array, new_element) %}arrayPushBack({{ array }}, {{ new_element }}){% endmacro %}

{% macro olapdb__array_concat(array_1, array_2) %}arrayConcat({{ array_1 }}, {{ array_2 }}){% endmacro %}

{# The end may be any expression: numbers() takes constants only. #}
{% macro olapdb__date_spine(datepart, start_date, end_date) %}
  select {{ dbt.dateadd(datepart, "number", start_date) }} as date_{{ datepart }}
  from (
    select arrayJoin(range(toUInt64(greatest({{ dbt.datediff(start_date, end_date, datepart) }}, 0)))) as number
  )
{% endmacro %}
