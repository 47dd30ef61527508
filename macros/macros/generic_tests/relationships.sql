{# dbt's own looks for the NULL of a LEFT JOIN, where ClickHouse has the type's default value. #}
{% macro olapdb__test_relationships(model, column_name, to, field) %}
with child as (
    select {{ column_name }} as from_field
    from {{ model }}
    where {{ column_name }} is not null
),

parent as (
    select {{ field }} as to_field
    from {{ to }}
)

select from_field
from child
left anti join parent on child.from_field = parent.to_field
{% endmacro %}
