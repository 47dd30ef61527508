{# Macros of dbt_utils whose SQL is not ClickHouse's. The adapter puts them into the package's dispatch. #}

{# The parts of an incremental_mv, its trigger and target, are no relations of the project. #}
{% macro olapdb__get_tables_by_pattern_sql(schema_pattern, table_pattern, exclude='', database=target.database) %}
  select distinct
    database as table_schema,
    name as table_name,
    if(engine = 'View', 'view', 'table') as table_type
  from system.tables
  where database ilike {{ adapter.string_literal(schema_pattern) }}
    and name ilike {{ adapter.string_literal(table_pattern) }}
    and name not ilike {{ adapter.string_literal(exclude) }}
    and engine != 'MaterializedView'
    and (not endsWith(name, '__target') or (database, replaceRegexpOne(name, '__target$', '')) not in
      (select database, name from system.tables where engine = 'View'))
{% endmacro %}
