{# Python models: the model's rows are written into a table beside the model in one commit, and the
   materialization goes on with `select * from` that table as the model's SQL. #}

{# Return the table of a Python model's rows, none for a SQL model. The caller drops the table. #}
{% macro olapdb_python_rows(target, compiled_code) %}
  {% if model.language == 'python' %}
    {{ return(adapter.python_model_rows(target, model, compiled_code)) }}
  {% endif %}
  {{ return(none) }}
{% endmacro %}

{# Return the SELECT that a materialization builds the model from. #}
{% macro olapdb_select_rows(python_rows, compiled_code) %}
  {{ return(compiled_code if python_rows is none else 'select * from ' ~ python_rows.render()) }}
{% endmacro %}
