"""KILL QUERY: cancel statements that run in this process."""

from __future__ import annotations

from olapdb.errors import NotSupportedError
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.query import select
from olapdb.types import STRING

_NAMES = ("kill_status", "query_id", "query")


def kill(statement: nodes.Kill, context: StatementContext) -> Result:
    """Run KILL QUERY WHERE …, a condition over system.processes. Return a row for each cancelled
    statement.

    A cancelled statement ends at its next batch with QUERY_WAS_CANCELLED. The KILL never cancels
    itself. KILL MUTATION raises NotSupportedError.
    """
    if statement.kind == "MUTATION":
        raise NotSupportedError(
            "There are no mutations in the background: each ends with its statement.",
            hint="KILL QUERY WHERE query_id = '…' ends the statement; nothing is half done then.",
            position=statement.position,
        )
    query_ids = _matching_query_ids(statement.where, context)
    cancelled_rows = []
    for running in context.services.activity.running():
        if running.query_id in query_ids and running.query_id != context.query_id:
            running.cancelled.set()
            cancelled_rows.append(("waiting", running.query_id, running.query))
    columns = [list(column) for column in zip(*cancelled_rows, strict=True)] or [[], [], []]
    return from_columns(_NAMES, [STRING] * 3, columns)


def _matching_query_ids(where: nodes.Expression, context: StatementContext) -> set[object]:
    """Return the ids of the running queries that satisfy the condition."""
    query = nodes.Select(
        columns=(nodes.Identifier(("query_id",)),),
        where=where,
        source=nodes.TableReference(nodes.TableName("processes", "system")),
    )
    result = select.run_at(query, context, context.snapshot())
    return {row[0] for row in result.to_rows()}
