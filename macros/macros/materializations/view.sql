{% materialization view, adapter='olapdb' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% if existing is none or adapter.is_plain_view(existing) %}
    {% call statement('main') %}{{ get_create_view_as_sql(target, sql) }}{% endcall %}
  {% else %}
    {%- set new = make_intermediate_relation(target) -%}
    {%- set backup = make_backup_relation(target, existing.type) -%}
    {% do adapter.check_rebuild(existing, 'view', should_full_refresh()) %}
    {% do drop_relation_if_exists(load_cached_relation(new)) %}
    {% do drop_relation_if_exists(load_cached_relation(backup)) %}
    {% call statement('main') %}{{ get_create_view_as_sql(new, sql) }}{% endcall %}
    {% do adapter.swap_in(new, existing, backup, should_full_refresh()) %}
    {% do adapter.drop_relation(backup) %}
  {% endif %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
