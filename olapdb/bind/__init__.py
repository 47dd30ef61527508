"""Statement and snapshot to typed plan: every name and type error that a user sees comes from here.

    bind_query(query, scope) -> Plan
    bind_expression(expression, table, scope) -> Expression over the table's columns
    bind_constant(expression, type, scope) -> the value of an expression without columns
    bind_value(expression, scope) -> that value in its own type
    bind_expression_over(expression, schema, scope) -> Expression over a schema

`contracts` has the interfaces that the modules share. `analysis` and `qualify` answer questions about
syntax trees for the views.
"""

from olapdb.bind.entry import (
    bind_constant,
    bind_expression,
    bind_expression_over,
    bind_query,
    bind_value,
)
from olapdb.bind.scope import NO_SNAPSHOT, BindScope

__all__ = [
    "NO_SNAPSHOT",
    "BindScope",
    "bind_constant",
    "bind_expression",
    "bind_expression_over",
    "bind_query",
    "bind_value",
]
