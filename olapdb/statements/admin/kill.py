"""KILL QUERY: cancel statements that run in this process."""

from __future__ import annotations

from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.query import select
from olapdb.types import STRING

_NAMES = ("kill_status", "query_id", "query")
_LISTED_BY = {"QUERY": ("processes", "query_id"), "MUTATION": ("mutations", "mutation_id")}
"""The system table that a condition is about, and the column that names a row of it."""


def kill(statement: nodes.Kill, context: StatementContext) -> Result:
    """Run KILL QUERY WHERE …, a condition over system.processes. Return a row for each cancelled
    statement, and no result for none.

    A cancelled statement ends at its next batch with QUERY_WAS_CANCELLED. The KILL never cancels
    itself; with TEST nothing is cancelled. KILL MUTATION finds nothing to end: a mutation is done
    when its statement is, and KILL QUERY ends that. No part moves to another shard.
    """
    if statement.kind == "PART_MOVE_TO_SHARD":
        return Result()
    found = _matching(statement, context)
    if statement.kind == "MUTATION":
        return Result()
    rows = []
    for running in context.services.activity.running():
        if running.query_id in found and running.query_id != context.query_id:
            if not statement.test:
                running.cancelled.set()
            rows.append(("waiting", running.query_id, running.query))
    if not rows:
        return Result()
    columns = [list(column) for column in zip(*rows, strict=True)]
    return from_columns(_NAMES, [STRING] * 3, columns)


def _matching(statement: nodes.Kill, context: StatementContext) -> set[object]:
    """Return the ids of the running queries, or of the mutations, that satisfy the condition."""
    table, name = _LISTED_BY[statement.kind]
    query = nodes.Select(
        columns=(nodes.Identifier((name,)),),
        where=statement.where,
        source=nodes.TableReference(nodes.TableName(table, "system")),
    )
    result = select.run_at(query, context, context.snapshot())
    return {row[0] for row in result.to_rows()}
