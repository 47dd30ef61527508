"""The query of a view with the names and types that its CREATE recorded."""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.contracts import BoundQuery, QueryBinder
from olapdb.model.schema import Column
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Cast, Expression


def as_columns(queries: QueryBinder, bound: BoundQuery, columns: tuple[Column, ...]) -> BoundQuery:
    """Return the query with the names and types of `columns`, which CREATE VIEW recorded."""
    expressions: dict[str, Expression] = {}
    outputs = []
    changes = False
    for output, column in zip(bound.columns, columns, strict=True):
        reference: Expression = output.reference
        unique = output.unique
        if output.type != column.type:
            changes = True
            reference, unique = Cast(column.type, reference), queries.names.unique(column.name)
        expressions[unique] = reference
        outputs.append(replace(output, unique=unique, name=column.name, type=column.type))
    node = plan.Project(bound.node, tuple(expressions.items())) if changes else bound.node
    return BoundQuery(node, tuple(outputs))
