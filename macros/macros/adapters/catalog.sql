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
      multiIf(v.name != '' or t.engine = 'MaterializedView', 'materialized view',
        t.engine = 'View', 'view', 'table') as table_type,
      nullIf(t.comment, '') as table_comment,
      c.name as column_name,
      c.position as column_index,
      c.type as column_type,
      nullIf(c.comment, '') as column_comment,
      null as table_owner,
      'Rows' as `stats:row_count:label`,
      s.total_rows as `stats:row_count:value`,
      'Rows in the parts of the table; a merging engine may have several of one key'
        as `stats:row_count:description`,
      s.total_rows is not null as `stats:row_count:include`,
      'Bytes' as `stats:bytes:label`,
      s.total_bytes as `stats:bytes:value`,
      'Size of the parts of the table' as `stats:bytes:description`,
      s.total_bytes is not null as `stats:bytes:include`,
      'Last modified' as `stats:last_modified:label`,
      concat(toString(p.modified), ' UTC') as `stats:last_modified:value`,
      'When a part was last written, by an INSERT, a trigger, a merge or a replay'
        as `stats:last_modified:description`,
      p.parts > 0 as `stats:last_modified:include`,
      'Verdict' as `stats:verdict:label`,
      nullIf(concat(v.verdict, if(v.reason = '', '', ': '), v.reason), '') as `stats:verdict:value`,
      'What the ledger says of the trigger that maintains this model' as `stats:verdict:description`,
      v.verdict != '' as `stats:verdict:include`,
      'Maintained by' as `stats:lineage:label`,
      nullIf(if(v.name = '', '', concat(v.source_database, '.', v.source_table, ' → ',
        v.database, '.', v.name, ' → ', v.target_database, '.', v.target_table)), '')
        as `stats:lineage:value`,
      'The source whose INSERTs fire the trigger, the trigger, and the target that it writes'
        as `stats:lineage:description`,
      v.name != '' as `stats:lineage:include`
    from system.columns as c
    inner join system.tables as t on t.database = c.database and t.name = c.table
    {# A read view has the rows and the verdict of its trigger, which has its name with __mv. #}
    left join (select * from system.views where comment like '{"olapdb"%' and standing = '') as v
      on t.engine = 'View' and v.database = c.database and v.name = concat(c.table, '__mv')
    left join system.tables as s
      on s.database = if(v.name = '', c.database, v.target_database)
      and s.name = if(v.name = '', c.table, v.target_table)
    left join (
      select database, table, max(modification_time) as modified, count() as parts
      from system.parts where active group by database, table
    ) as p on p.database = s.database and p.table = s.name
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
