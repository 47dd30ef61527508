{% materialization table, adapter='olapdb', supported_languages=['sql', 'python'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set python_rows = olapdb_python_rows(target, compiled_code) -%}
  {%- set sql = olapdb_select_rows(python_rows, compiled_code) -%}
  {% do olapdb_build_table(existing, target, sql) %}
  {% do drop_relation_if_exists(python_rows) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{# Build the table beside the existing relation and swap it in. Only a full refresh drops triggers that
   read the existing one. #}
{% macro olapdb_build_table(existing, target, sql) %}
  {%- set new = make_intermediate_relation(target) -%}
  {%- set backup = make_backup_relation(target, existing.type if existing is not none else 'table') -%}

  {% if existing is not none %}
    {% do adapter.check_rebuild(existing, 'table', should_full_refresh()) %}
  {% endif %}
  {% do drop_relation_if_exists(load_cached_relation(new)) %}
  {% do drop_relation_if_exists(load_cached_relation(backup)) %}

  {% call statement('main') %}{{ get_create_table_as_sql(False, new, sql) }}{% endcall %}
  {% do create_indexes(new) %}

  {% if existing is none %}
    {% do adapter.rename_relation(new, target) %}
  {% else %}
    {% do adapter.swap_in(new, existing, backup, should_full_refresh()) %}
    {% do adapter.drop_relation(backup) %}
  {% endif %}
{% endmacro %}
