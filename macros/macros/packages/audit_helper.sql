{# Macros of audit_helper whose SQL is not ClickHouse's. The adapter puts them into the package's dispatch. #}

{% macro olapdb__get_columns_in_relation_sql(relation) %}
  select position as ordinal_position, name as column_name, type as data_type,
    if(type like '%Nullable(%', 'YES', 'NO') as is_nullable
  from system.columns
  where database = {{ adapter.string_literal(relation.schema) }}
    and table = {{ adapter.string_literal(relation.identifier) }}
  order by ordinal_position
{% endmacro %}

{# These compare rows by a full join, and look for the NULL of a row without a partner. #}
{% macro olapdb__compare_relation_columns(a_relation, b_relation) %}
  {{ return(adapter.with_standard_nulls(
       audit_helper.default__compare_relation_columns(a_relation, b_relation))) }}
{% endmacro %}

{% macro olapdb__compare_column_values(a_query, b_query, primary_key, column_to_compare, emojis, a_relation_name, b_relation_name) %}
  {{ return(adapter.with_standard_nulls(audit_helper.default__compare_column_values(
       a_query, b_query, primary_key, column_to_compare, emojis, a_relation_name, b_relation_name))) }}
{% endmacro %}

{% macro olapdb__compare_column_values_verbose(a_query, b_query, primary_key, column_to_compare) %}
  {{ return(adapter.with_standard_nulls(audit_helper.default__compare_column_values_verbose(
       a_query, b_query, primary_key, column_to_compare))) }}
{% endmacro %}

{# A sum of hashes depends on how often each row is there, not on the order. The hash of a tuple counts NULL as a
   value; that of several arguments is NULL, which a sum leaves out. #}
{% macro olapdb__quick_are_queries_identical(query_a, query_b, columns, event_time) %}
  {% if event_time %}
    {% do exceptions.raise_compiler_error(
      "audit_helper.quick_are_queries_identical has no event_time on olapdb. Filter the two queries.") %}
  {% endif %}
  select count(distinct hash_result) = 1 as are_tables_identical
  from (
    select (count(), sum(sipHash64(tuple({{ columns | join(', ') }})))) as hash_result from ({{ query_a }})
    union all
    select (count(), sum(sipHash64(tuple({{ columns | join(', ') }})))) from ({{ query_b }})
  )
{% endmacro %}
