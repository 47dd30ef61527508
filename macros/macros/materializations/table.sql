{% materialization table, adapter='olapdb', supported_languages=['sql', 'python'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set python_rows = olapdb_python_rows(target, compiled_code) -%}
  {%- set sql = olapdb_select_rows(python_rows, compiled_code) -%}
  {% if adapter.shares_rows(python_rows, model, existing) %}
    {% call statement('main') %}create or replace table {{ target.render() }} clone as {{ python_rows.render() }}{% endcall %}
    {% do adapter.after_replacement(existing, target) %}
  {% else %}
    {% do olapdb_build_table(existing, target, sql) %}
  {% endif %}
  {% do drop_relation_if_exists(python_rows) %}

  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{# Create the table, or replace the relation of its name, in one statement: views over it go on. #}
{% macro olapdb_build_table(existing, target, sql) %}
  {% if adapter.keeps_for_triggers(existing, sql) %}
    {{ return(olapdb_keep()) }}
  {% endif %}
  {% if existing is not none %}
    {% do adapter.check_replacement(existing, 'table') %}
  {% endif %}
  {% call statement('main') %}{{ get_create_table_as_sql(False, target, sql) }}{% endcall %}
  {% do create_indexes(target) %}
  {% do adapter.after_replacement(existing, target) %}
{% endmacro %}

{# The result of a model that stays as it is, since its limited rows would reach live triggers. #}
{% macro olapdb_keep() %}
  {% call noop_statement('main', 'NO CHANGE', 'NO CHANGE', 0) %}{% endcall %}
{% endmacro %}
