"""EXPLAIN: what would be run, and how much of the data it would touch."""

from __future__ import annotations

from olapdb.errors import NotSupportedError
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements import select
from olapdb.statements.context import StatementContext
from olapdb.types import STRING

_KNOWN = ("indexes", "header", "description", "actions", "optimize")


def explain(statement: nodes.Explain, context: StatementContext) -> Result:
    """One column `explain`, a row a line.

    EXPLAIN [PLAN] [indexes = 1] shows the optimized plan, with the parts and granules left after
    each index; EXPLAIN SYNTAX the statement as it was read.
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
            from olapdb.sql.format import to_sql

            return _lines([to_sql(statement.statement)])
        case "PLAN":
            return _lines(_plan(statement.statement, bool(options.get("indexes")), context))
        case _:
            raise NotSupportedError(
                f"EXPLAIN {statement.kind} is not supported yet.",
                hint="EXPLAIN, EXPLAIN indexes = 1 and EXPLAIN SYNTAX are.",
                position=statement.position,
            )


def _plan(statement: nodes.Statement, indexes: bool, context: StatementContext) -> list[str]:
    if not isinstance(statement, nodes.Query):
        raise NotSupportedError(
            "EXPLAIN takes a SELECT.", position=statement.position
        )
    snapshot = context.snapshot()
    plan = select.plan_query(statement, context, snapshot)
    if indexes:
        from olapdb.execute import explain_indexes

        return explain_indexes(plan, context.execution(snapshot))
    from olapdb.plan.explain import explain as explain_plan

    return explain_plan(plan)


def _lines(lines: list[str]) -> Result:
    return from_columns(["explain"], [STRING], [lines])
