{# Macros of audit_helper whose SQL is not ClickHouse's. The adapter puts them into the package's dispatch. #}

{% macro olapdb__get_columns_in_relation_sql(relation) %}
  select position as ordinal_position, name as column_name, type as data_type,
    if(type like '%Nullable(%', 'YES', 'NO') as is_nullable
  from system.columns
  where database = {{ adapter.string_literal(relation.schema) }}
    and table = {{ adapter.string_literal(relation.identifier) }}
  order by ordinal_position
{% endmacro %}
