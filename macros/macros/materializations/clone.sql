{# dbt's own materialization, which clones tables, and the target of an `incremental_mv` with a read
   view of its own. Any other relation becomes a view. #}
{% materialization clone, adapter='olapdb' %}
  {%- if not defer_relation -%}
    {{ log("No relation found in state manifest for " ~ model.unique_id, info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set existing = load_cached_relation(this) -%}
  {%- if existing and not flags.FULL_REFRESH -%}
    {{ log("Relation " ~ existing ~ " already exists", info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set source = load_cached_relation(defer_relation) -%}
  {%- if source is none -%}
    {% do exceptions.raise_compiler_error(
      "The state has the node " ~ model.unique_id ~ " as " ~ defer_relation.render()
      ~ ", and that relation does not exist. Run dbt for the target of that state first, or give "
      ~ "--state the artifacts of another target.") %}
  {%- endif -%}
  {%- set is_model = adapter.is_incremental_mv(source) -%}
  {%- if not is_model and (not source.is_table or not can_clone_table()) -%}
    {{ return(context['materialization_view_olapdb']()) }}
  {%- endif -%}

  {%- set target = this.incorporate(type=source.type) -%}
  {%- if target.render() == defer_relation.render() -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ target.render()) }}
  {%- else -%}
    {%- if existing is not none and (is_model or not existing.is_table) -%}
      {% do adapter.check_replacement(existing, 'clone') %}
      {% do adapter.drop_relation(existing) %}
    {%- endif -%}
    {%- for sql in adapter.clone_statements(source, target, is_model) -%}
      {% call statement('main', auto_begin=False) %}{{ sql }}{% endcall %}
    {%- endfor -%}
  {%- endif -%}

  {% do apply_grants(target, config.get('grants'), should_revoke=should_revoke(existing, full_refresh_mode=True)) %}
  {% do persist_docs(target, model) %}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{% macro olapdb__can_clone_table() %}{{ return(True) }}{% endmacro %}

{% macro olapdb__create_or_replace_clone(this_relation, defer_relation) %}
  create or replace table {{ this_relation.render() }} clone as {{ defer_relation.render() }}
{% endmacro %}
