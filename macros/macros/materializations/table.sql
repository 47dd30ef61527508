{% materialization table, adapter='olapdb' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set new = make_intermediate_relation(target) -%}
  {%- set backup = make_backup_relation(target, existing.type if existing is not none else 'table') -%}

  {% do drop_relation_if_exists(load_cached_relation(new)) %}
  {% do drop_relation_if_exists(load_cached_relation(backup)) %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% call statement('main') %}{{ get_create_table_as_sql(False, new, sql) }}{% endcall %}
  {% do create_indexes(new) %}

  {% if existing is none %}
    {% do adapter.rename_relation(new, target) %}
  {% else %}
    {% do adapter.swap_in(new, existing, backup) %}
    {% do adapter.drop_relation(backup) %}
  {% endif %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
