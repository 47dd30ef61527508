{# Macros of dbt_date whose SQL is not ClickHouse's. The adapter puts them into the package's dispatch. #}

{# The time on the clocks of the other zone, as a time without zone, which is what the package means. #}
{% macro olapdb__convert_timezone(column, target_tz, source_tz) -%}
  cast(toString(toTimezone(
    toDateTime64(toString(cast({{ column }} as {{ dbt.type_timestamp() }})), 6, {{ adapter.string_literal(source_tz) }}),
    {{ adapter.string_literal(target_tz) }})) as {{ dbt.type_timestamp() }})
{%- endmacro %}

{% macro olapdb__date_part(datepart, date) -%}
  {%- set functions = {
    'year': 'toYear', 'isoyear': 'toISOYear', 'quarter': 'toQuarter', 'month': 'toMonth', 'day': 'toDayOfMonth',
    'doy': 'toDayOfYear', 'dayofyear': 'toDayOfYear', 'isodow': 'toDayOfWeek', 'isoweek': 'toISOWeek',
    'week': 'toISOWeek', 'hour': 'toHour', 'minute': 'toMinute', 'second': 'toSecond',
    'epoch': 'toUnixTimestamp'} -%}
  {%- set part = datepart | lower -%}
  {%- if part in ('dow', 'dayofweek') -%}
    toDayOfWeek({{ adapter.dated(date) }}) % 7
  {%- elif part in functions -%}
    {{ functions[part] }}({{ adapter.dated(date) }})
  {%- else -%}
    {% do exceptions.raise_compiler_error(
      "dbt_date.date_part has no part " ~ datepart ~ " on olapdb. There are dow, dayofweek, "
      ~ functions | join(", ") ~ ".") %}
  {%- endif -%}
{%- endmacro %}

{# 1 is Monday with isoweek, else Sunday. #}
{% macro olapdb__day_of_week(date, isoweek) -%}
  toDayOfWeek({{ adapter.dated(date) }}){{ '' if isoweek else ' % 7 + 1' }}
{%- endmacro %}

{% macro olapdb__day_name(date, short) -%}
  formatDateTime({{ adapter.dated(date) }}, '{{ "%a" if short else "%W" }}')
{%- endmacro %}

{% macro olapdb__month_name(date, short) -%}
  formatDateTime({{ adapter.dated(date) }}, '{{ "%b" if short else "%M" }}')
{%- endmacro %}

{% macro olapdb__from_unixtimestamp(epochs, format="seconds") -%}
  {%- if format == 'seconds' -%} toDateTime64({{ epochs }}, 6)
  {%- elif format == 'milliseconds' -%} fromUnixTimestamp64Milli(toInt64({{ epochs }}))
  {%- elif format == 'microseconds' -%} fromUnixTimestamp64Micro(toInt64({{ epochs }}))
  {%- elif format == 'nanoseconds' -%} fromUnixTimestamp64Nano(toInt64({{ epochs }}))
  {%- else -%}
    {% do exceptions.raise_compiler_error(
      "The format of dbt_date.from_unixtimestamp is seconds, milliseconds, microseconds or nanoseconds, not " ~ format ~ ".") %}
  {%- endif -%}
{%- endmacro %}

{% macro olapdb__iso_week_start(date) -%}toMonday({{ adapter.dated(date) }}){%- endmacro %}

{# Weeks begin on Sunday; the first one of a year on its first day. #}
{% macro olapdb__week_start(date) -%}toStartOfWeek({{ adapter.dated(date) }}, 0){%- endmacro %}

{% macro olapdb__week_end(date) -%}
  toDate({{ dbt.dateadd('day', 6, olapdb__week_start(date)) }})
{%- endmacro %}

{% macro olapdb__week_of_year(date) -%}intDiv(toDayOfYear({{ adapter.dated(date) }}) + 6, 7){%- endmacro %}
