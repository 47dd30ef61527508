{# The change of an incremental run, one statement each: rows leave and come in one commit, of which the
   views over the table are told exactly. `temp_relation` is the model's query in parentheses. #}

{% macro olapdb__get_incremental_default_sql(arg_dict) %}
  {% if arg_dict['unique_key'] %}
    {{ return(get_incremental_delete_insert_sql(arg_dict)) }}
  {% endif %}
  {{ return(get_incremental_append_sql(arg_dict)) }}
{% endmacro %}

{% macro olapdb__get_incremental_append_sql(arg_dict) %}
  {{ return(olapdb_insert(arg_dict, '')) }}
{% endmacro %}

{% macro olapdb__get_incremental_delete_insert_sql(arg_dict) %}
  {{ return(olapdb_insert(arg_dict, adapter.replace_keys_clause(
       arg_dict['unique_key'], arg_dict['incremental_predicates']))) }}
{% endmacro %}

{% macro olapdb__get_incremental_merge_sql(arg_dict) %}
  {%- set kept = adapter.merge_kept_columns(
        model.config, arg_dict['unique_key'], arg_dict['dest_columns']) -%}
  {%- set clause = adapter.replace_keys_clause(arg_dict['unique_key'], arg_dict['incremental_predicates']) -%}
  {% if not kept %}
    {{ return(olapdb_insert(arg_dict, clause)) }}
  {% endif %}
  {{ return(olapdb_insert_rows(arg_dict, clause, adapter.merged_rows(
       arg_dict['target_relation'], arg_dict['temp_relation'], arg_dict['unique_key'],
       arg_dict['dest_columns'], kept, arg_dict['incremental_predicates']))) }}
{% endmacro %}

{% macro olapdb__get_incremental_insert_overwrite_sql(arg_dict) %}
  {{ return(olapdb_insert(arg_dict, adapter.replace_partitions_clause(
       model.config, arg_dict['incremental_predicates']))) }}
{% endmacro %}

{% macro olapdb__get_incremental_microbatch_sql(arg_dict) %}
  {{ return(olapdb_insert(arg_dict, adapter.replace_batch_clause(model, arg_dict['incremental_predicates']))) }}
{% endmacro %}

{% macro olapdb_insert(arg_dict, clause) %}
  {%- set rows -%}
    select {{ get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) }}
    from {{ arg_dict['temp_relation'] }}
  {%- endset -%}
  {{ return(olapdb_insert_rows(arg_dict, clause, rows)) }}
{% endmacro %}

{% macro olapdb_insert_rows(arg_dict, clause, rows) %}
  {%- set sql -%}
    insert into {{ arg_dict['target_relation'].render() }}
    ({{ get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) }})
    {{ clause }}
    {{ rows }}
    {{ adapter.query_settings(config.model.config) }}
  {%- endset -%}
  {{ return(sql) }}
{% endmacro %}
