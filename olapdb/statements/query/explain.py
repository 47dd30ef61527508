"""EXPLAIN: what would be run, how much of the data it would touch, and where rows come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.errors import NotSupportedError, UnsupportedMethod
from olapdb.execute import explain_indexes
from olapdb.model.schema import MaterializedView
from olapdb.plan.explain import explain as explain_plan
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.views import judged_statement
from olapdb.statements.query import select
from olapdb.system.registry import moment_if_any
from olapdb.types import STRING, UINT8, UINT64, DateTime64, Nullable
from olapdb.views.definition.dependents import impact_of
from olapdb.views.definition.judgement import judged_items
from olapdb.views.proof.provenance import provenance

if TYPE_CHECKING:
    from olapdb.views.provability import JudgedItem

_KNOWN = ("indexes", "header", "description", "actions", "optimize")


def explain(statement: nodes.Explain, context: StatementContext) -> Result:
    """EXPLAIN [PLAN] [indexes = 1] shows the optimized plan, with the parts and granules left after
    each index, and EXPLAIN SYNTAX the statement as it was read: one column `explain`, a row a line.

    EXPLAIN VIEW v, and EXPLAIN VIEW CREATE MATERIALIZED VIEW …, give a row for each part of the
    definition: whether it is provable, and why. EXPLAIN DEPENDENCIES t gives what a change of t reaches; EXPLAIN PROVENANCE SELECT … FROM target
    WHERE … the INSERTs that the rows were made from: tables with columns of their own.
    """
    options = {s.name: s.value for s in statement.settings}
    for name in options:
        if name not in _KNOWN:
            raise NotSupportedError(
                f"EXPLAIN does not know {name}.",
                hint=f"It knows {', '.join(_KNOWN)}.",
                position=statement.position,
            )
    match statement.kind:
        case "SYNTAX":
            return _lines([to_sql(statement.statement)])
        case "PLAN":
            return _lines(_plan(statement.statement, bool(options.get("indexes")), context))
        case "DEPENDENCIES":
            return _dependencies(statement.statement, context)
        case "PROVENANCE":
            return _provenance(statement.statement, context)
        case "VIEW":
            return _view(statement.statement, context)
        case _:
            raise NotSupportedError(
                f"EXPLAIN {statement.kind} is not supported yet.",
                hint="EXPLAIN, EXPLAIN indexes = 1, EXPLAIN SYNTAX, EXPLAIN VIEW v, EXPLAIN"
                " DEPENDENCIES t and EXPLAIN PROVENANCE SELECT … are.",
                position=statement.position,
            )


def _plan(statement: nodes.Node, indexes: bool, context: StatementContext) -> list[str]:
    if not isinstance(statement, nodes.Query):
        raise NotSupportedError("EXPLAIN takes a SELECT.", position=statement.position)
    context = select.with_query_settings(statement, context)
    snapshot = context.reading_snapshot()
    plan = select.plan_query(statement, context, snapshot)
    if indexes:
        return explain_indexes(plan, context.execution(snapshot))

    return explain_plan(plan)


_JUDGED = ("item", "provable", "because", "fix")
_IMPACT = ("level", "kind", "name", "reached_from", "how")
_ORIGIN = (
    "part",
    "part_rows",
    "view",
    "source",
    "first_block",
    "last_block",
    "rows",
    "commit",
    "kind",
    "query_id",
    "time",
    "statement",
)


def _dependencies(name: nodes.Node, context: StatementContext) -> Result:

    assert isinstance(name, nodes.TableName)
    snapshot = context.reading_snapshot()
    found = impact_of(context.require(snapshot, name), snapshot)
    columns = [[getattr(one, column) for one in found] for column in _IMPACT]
    return from_columns(_IMPACT, [UINT64, STRING, STRING, STRING, STRING], columns)


def _provenance(statement: nodes.Node, context: StatementContext) -> Result:

    query, reference = _rows_of_target(statement)
    context = select.with_query_settings(query, context)
    snapshot = context.reading_snapshot()
    target = context.require_table(snapshot, reference.table, "EXPLAIN PROVENANCE")
    condition = query.where
    if query.prewhere is not None and query.where is not None:
        condition = nodes.Function("and", (query.prewhere, query.where))
    elif query.prewhere is not None:
        condition = query.prewhere
    # The condition without FINAL: every part that holds rows of the key counts.
    found = select.run_on(
        nodes.Select(
            columns=(nodes.Identifier(("_part",)),),
            distinct=True,
            where=condition,
            source=replace(reference, final=False),
            with_items=query.with_items,
        ),
        replace(context, settings=context.settings.with_changes({"final": False})),
        snapshot,
    )
    names = {row for batch in found.batches() for row in batch.column(0).to_pylist()}
    found.close()
    parts = [part for part in snapshot.parts(target.id) if part.rows and part.name in names]
    origins = provenance(target, parts, condition, snapshot, context.services)
    columns: list[list[object]] = [
        [getattr(one, column) for one in origins] for column in _ORIGIN if column != "time"
    ]
    columns.insert(_ORIGIN.index("time"), [moment_if_any(one.created_ms) for one in origins])
    types = [
        STRING,
        UINT64,
        STRING,
        STRING,
        UINT64,
        UINT64,
        UINT64,
        UINT64,
        STRING,
        STRING,
        Nullable(DateTime64(3)),
        STRING,
    ]
    return from_columns(_ORIGIN, types, columns)


def _rows_of_target(statement: nodes.Node) -> tuple[nodes.Select, nodes.TableReference]:
    if isinstance(statement, nodes.Select) and isinstance(statement.source, nodes.TableReference):
        return statement, statement.source
    raise NotSupportedError(
        "EXPLAIN PROVENANCE takes SELECT … FROM a table WHERE …, without joins and subqueries in FROM.",
        hint="Name the target of the view; system.views has target_table.",
        position=statement.position,
    )


def _view(statement: nodes.Node, context: StatementContext) -> Result:
    items = _items(statement, context)
    columns: list[list[object]] = [
        [item.name for item in items],
        [int(item.provable) for item in items],
        [item.because for item in items],
        [item.fix for item in items],
    ]
    return from_columns(_JUDGED, [STRING, UINT8, STRING, STRING], columns)


def _items(statement: nodes.Node, context: StatementContext) -> Sequence[JudgedItem]:
    if isinstance(statement, nodes.CreateMaterializedView):
        return judged_statement(statement, context).items
    if not isinstance(statement, nodes.TableName):
        raise NotSupportedError(
            "EXPLAIN VIEW takes the name of a materialized view, or its CREATE statement.",
            hint="EXPLAIN shows the plan of a SELECT.",
            position=statement.position,
        )

    snapshot = context.reading_snapshot()
    found = context.require(snapshot, statement)
    if not isinstance(found, MaterializedView):
        raise UnsupportedMethod(
            f"{found.database}.{found.name} is not a materialized view.",
            hint="system.views names them all.",
            position=statement.position,
        )
    return judged_items(found, snapshot)


def _lines(lines: list[str]) -> Result:
    return from_columns(["explain"], [STRING], [lines])
