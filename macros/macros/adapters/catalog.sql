{% macro olapdb__get_catalog(information_schema, schemas) %}
  {% set conditions = [] %}
  {% for schema in schemas %}
    {% do conditions.append("lower(c.database) = lower(" ~ adapter.string_literal(schema) ~ ")") %}
  {% endfor %}
  {{ return(olapdb_catalog(conditions)) }}
{% endmacro %}

{% macro olapdb__get_catalog_relations(information_schema, relations) %}
  {% set conditions = [] %}
  {% for relation in relations %}
    {% set condition = "c.database = " ~ adapter.string_literal(relation.schema) %}
    {% if relation.identifier %}
      {% set condition = condition ~ " and c.table = " ~ adapter.string_literal(relation.identifier) %}
    {% endif %}
    {% do conditions.append("(" ~ condition ~ ")") %}
  {% endfor %}
  {{ return(olapdb_catalog(conditions)) }}
{% endmacro %}

{% macro olapdb_catalog(conditions) %}
  {% call statement('catalog', fetch_result=True, auto_begin=False) %}
    select
      {{ adapter.string_literal(target.database) }} as table_database,
      c.database as table_schema,
      c.table as table_name,
      multiIf(t.engine = 'View', 'view', t.engine = 'MaterializedView', 'materialized view', 'table')
        as table_type,
      nullIf(t.comment, '') as table_comment,
      c.name as column_name,
      c.position as column_index,
      c.type as column_type,
      nullIf(c.comment, '') as column_comment,
      null as table_owner,
      'Rows' as `stats:row_count:label`,
      t.total_rows as `stats:row_count:value`,
      'Rows in the parts of the table; a merging engine may have several of one key'
        as `stats:row_count:description`,
      t.total_rows is not null as `stats:row_count:include`,
      'Bytes' as `stats:bytes:label`,
      t.total_bytes as `stats:bytes:value`,
      'Size of the parts of the table' as `stats:bytes:description`,
      t.total_bytes is not null as `stats:bytes:include`
    from system.columns as c
    inner join system.tables as t on t.database = c.database and t.name = c.table
    where {{ conditions | join(' or ') if conditions else '1 = 0' }}
    order by c.database, c.table, c.position
  {% endcall %}
  {{ return(load_result('catalog').table) }}
{% endmacro %}

{% macro olapdb__get_relation_last_modified(information_schema, relations) %}
  {% call statement('last_modified', fetch_result=True, auto_begin=False) %}
    select
      database as schema,
      table as identifier,
      max(modification_time) as last_modified,
      now() as snapshotted_at
    from system.parts
    where {% for relation in relations -%}
      (database = {{ adapter.string_literal(relation.schema) }}
       and table = {{ adapter.string_literal(relation.identifier) }})
      {%- if not loop.last %} or {% endif -%}
    {%- endfor %}
    group by database, table
  {% endcall %}
  {{ return(load_result('last_modified')) }}
{% endmacro %}
