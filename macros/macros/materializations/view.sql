{% materialization view, adapter='olapdb' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% if adapter.keeps_for_triggers(existing, sql) %}
    {% do olapdb_keep() %}
  {% else %}
    {% if existing is not none %}
      {% do adapter.check_replacement(existing, 'view') %}
    {% endif %}
    {% call statement('main') %}{{ get_create_view_as_sql(target, sql) }}{% endcall %}
    {% do adapter.after_replacement(existing, target) %}
  {% endif %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
