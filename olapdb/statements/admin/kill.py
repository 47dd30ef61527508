"""KILL QUERY: cancel statements that run in this process."""

from __future__ import annotations

import time

from olapdb import errors
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.query import select
from olapdb.types import STRING

_NAMES = ("kill_status", "query_id", "query")
POLL_SECONDS = 0.01
SYNC_SECONDS_MAX = 30.0
_LISTED_BY = {"QUERY": ("processes", "query_id"), "MUTATION": ("mutations", "mutation_id")}
"""The system table that a condition is about, and the column that names a row of it."""


def kill(statement: nodes.Kill, context: StatementContext) -> Result:
    """Run KILL QUERY WHERE …, a condition over system.processes. Return a row for each cancelled
    statement, and no result for none.

    A cancelled statement ends at its next batch with QUERY_WAS_CANCELLED. With SYNC the KILL waits
    for that, SYNC_SECONDS_MAX at most, since the reader of the statement's rows may have stopped. A
    KILL never cancels itself; with TEST it cancels nothing. KILL MUTATION finds nothing to end: a
    mutation is done when its statement is, and KILL QUERY ends that. No part moves to another
    shard."""
    if statement.kind == "PART_MOVE_TO_SHARD":
        return Result()
    query_ids = _matching(statement, context)
    if statement.kind == "MUTATION":
        return Result()
    activity = context.services.activity
    chosen = [
        running
        for running in activity.running()
        if running.query_id in query_ids and running.query_id != context.query_id
    ]
    if not chosen:
        return Result()
    if statement.mode != "TEST":
        for running in chosen:
            running.cancelled.set()
    ids = {running.query_id for running in chosen}
    unfinished = _wait(ids, context) if statement.mode == "SYNC" else ids
    rows = [
        (
            "waiting" if running.query_id in unfinished else "finished",
            running.query_id,
            running.query,
        )
        for running in chosen
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return from_columns(_NAMES, [STRING] * 3, columns)


def _wait(query_ids: set[str], context: StatementContext) -> set[str]:
    """Wait until the statements have ended, SYNC_SECONDS_MAX at most; return those that have not.

    Raises QueryWasCancelled if the KILL itself is cancelled."""
    until = time.monotonic() + SYNC_SECONDS_MAX
    while True:
        unfinished = query_ids.intersection(r.query_id for r in context.services.activity.running())
        if not unfinished or time.monotonic() > until:
            return unfinished
        if context.cancelled.wait(POLL_SECONDS):
            raise errors.QueryWasCancelled("The KILL was cancelled.")


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
