"""SYSTEM QUARANTINE PART 'part' ON t: set a damaged part aside."""

from __future__ import annotations

from dataclasses import fields

from olapdb.dml.quarantine import quarantine_part
from olapdb.lineage.row_removal import RowChange
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.types import STRING, UINT64


def quarantine(statement: nodes.System, context: StatementContext) -> Result:
    """Quarantine the part; return one row that describes it."""
    assert statement.table is not None
    table = context.require_table(context.snapshot(), statement.table, "QUARANTINE PART")
    change = RowChange(context.origin(), "QUARANTINE PART")
    quarantined = quarantine_part(change, table.id, statement.argument or "")
    names = [field.name for field in fields(quarantined)]
    types = [STRING, STRING, STRING, UINT64, UINT64]
    return from_columns(names, types, [[getattr(quarantined, name)] for name in names])
