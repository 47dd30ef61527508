"""`PARTITION value` and `PARTITION ID 'x'` as the id of a partition."""

from __future__ import annotations

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext


def find_partition(
    reference: nodes.PartitionReference, table: Table, context: StatementContext, snapshot: Snapshot
) -> str:
    """The partition id that `PARTITION value` or `PARTITION ID 'x'` names; it need not exist."""
    if reference.kind == "ID":
        return str(reference.id)
    if reference.kind != "VALUE" or reference.value is None:
        raise NotSupportedError(
            f"PARTITION {reference.kind} is not supported here.",
            hint="Name one partition by its value or by ID.",
            position=reference.position,
        )
    if not table.partition_key:
        raise BadArguments(
            f"{table.database}.{table.name} has no PARTITION BY; its partition is ID 'all'.",
            position=reference.position,
        )
    from olapdb.bind import bind_constant
    from olapdb.execute.layout import TableLayout, json_value, partition_id

    types = [e.type for e in TableLayout(table, context.environment).partition_expressions]
    given = reference.value
    is_tuple = isinstance(given, nodes.TupleLiteral) and len(types) > 1
    elements = given.elements if is_tuple and isinstance(given, nodes.TupleLiteral) else (given,)
    if len(elements) != len(types):
        raise BadArguments(
            f"PARTITION BY {table.partition_key} has {len(types)} elements, {len(elements)} are given.",
            position=reference.position,
        )
    scope = context.scope(snapshot)
    values = [json_value(bind_constant(e, t, scope)) for e, t in zip(elements, types, strict=True)]
    return partition_id(values, types)
