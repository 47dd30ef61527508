"""EXPLAIN: the plan, the data that it would read, the judgement of a view, the origin of rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.bind import bind_value
from olapdb.compute.profile import QueryProfile
from olapdb.errors import (
    IncorrectQuery,
    InvalidSettingValue,
    NotSupportedError,
    SyntaxError,
    UnknownSetting,
    UnsupportedMethod,
)
from olapdb.execute import estimator_of
from olapdb.execute.explain_analyze import analyzed_lines
from olapdb.execute.explain_pipeline import pipeline_lines
from olapdb.execute.pruning.explain_indexes import estimate_reads, explain_indexes
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.plan.explain import explain as explain_plan
from olapdb.plan.explain_json import explain_json
from olapdb.plan.nodes import Plan
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.formatter.call_form import show_calls
from olapdb.sql.formatter.definition_lines import show_statement
from olapdb.sql.syntax_tree import syntax_tree, tree_lines
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.views import judged_statement
from olapdb.statements.query import select
from olapdb.system.registry import moment_if_any
from olapdb.types import STRING, UINT8, UINT64, DataType, DateTime64, Nullable
from olapdb.views.definition.dependents import impact_of
from olapdb.views.definition.judgement import judged_items
from olapdb.views.proof.provenance import provenance

if TYPE_CHECKING:
    from olapdb.views.provability import JudgedItem

_OPTIONS = ("indexes", "header", "description", "actions", "optimize", "json")
_OF_QUERY_TREE = ("run_passes", "dump_passes", "passes", "dump_tree", "dump_ast")
_REFUSED_OPTIONS = (
    *("compact", "column_structure", "distributed", "sorting", "input_headers", "indices"),
    *("projections", "keep_logical_steps", "pretty", "estimates", "graph", "oneline"),
    *("run_query_tree_passes", "query_tree_passes"),
)
"""Options of ClickHouse that do not exist here."""
_WITHOUT_OPTIONS = ("ANALYZE", "ESTIMATE", "PIPELINE")
_FORMS = (
    "EXPLAIN, EXPLAIN indexes = 1, EXPLAIN ANALYZE, EXPLAIN ESTIMATE, EXPLAIN PIPELINE, EXPLAIN SYNTAX, EXPLAIN AST,"
    " EXPLAIN VIEW v, EXPLAIN DEPENDENCIES t and EXPLAIN PROVENANCE SELECT … are."
)


def explain(statement: nodes.Explain, context: StatementContext) -> Result:
    """Run EXPLAIN. The forms, and their results:

        EXPLAIN [PLAN]                   the optimized plan: one column `explain`, a row a line
        EXPLAIN indexes = 1              the plan with the parts and granules left after each index
        EXPLAIN ANALYZE                  runs the query: the plan with each node's time, rows and reads
        EXPLAIN ESTIMATE                 a row a table: the parts, rows and granules it would read
        EXPLAIN PIPELINE                 the operators, and in how many threads they work
        EXPLAIN AST                      the syntax tree, a node a line
        EXPLAIN SYNTAX [oneline = 1]     the statement as it was parsed, operators as calls
        EXPLAIN VIEW v | CREATE …        which parts of the view's definition are provable, and why
        EXPLAIN DEPENDENCIES t           the objects that a change of t affects
        EXPLAIN PROVENANCE SELECT …      the INSERTs that the selected rows of a target come from

    Raises NotSupportedError for other kinds and options.
    """
    if statement.kind == "CURRENT TRANSACTION":
        return _text_result(["<no current transaction>"])  # each statement is one atomic commit
    options = {setting.name: setting.value for setting in statement.settings}
    _check_options(statement, options)
    match statement.kind:
        case "SYNTAX":
            text = _syntax(statement.statement, bool(options.get("oneline")), context)
            return _text_result(_records(text, statement.statement, context))
        case "AST":
            return _text_result(list(tree_lines(syntax_tree(statement.statement))))
        case "PLAN":
            return _text_result(_plan(statement.statement, options, context))
        case "ANALYZE":
            return _text_result(_analyzed(statement.statement, context))
        case "ESTIMATE":
            return _estimate(statement.statement, context)
        case "PIPELINE":
            plan, snapshot, context = _planned(statement.statement, context)
            return _text_result(pipeline_lines(plan, context.execution(snapshot)))
        case "DEPENDENCIES":
            return _dependencies(statement.statement, context)
        case "PROVENANCE":
            return _provenance(statement.statement, context)
        case "QUERY TREE":
            _planned(statement.statement, context)  # its errors come first
            raise NotSupportedError(
                "EXPLAIN QUERY TREE is not supported: it shows the tree of ClickHouse's own analyzer.",
                hint="EXPLAIN shows the bound plan, EXPLAIN AST the syntax tree.",
                position=statement.position,
            )
        case "VIEW":
            return _view(statement.statement, context)
        case _:
            raise NotSupportedError(
                f"EXPLAIN {statement.kind} is not supported yet.",
                hint=_FORMS,
                position=statement.position,
            )


def _check_options(statement: nodes.Explain, options: Mapping[str, object]) -> None:
    """Raise UnknownSetting for an option that ClickHouse does not have either, NotSupportedError for
    one that is not known here, or that the form does not take."""
    for name, value in options.items():
        if name in _OPTIONS and value not in (0, 1):
            raise InvalidSettingValue(
                f'Invalid value {value} for setting "{name}". Expected boolean type.',
                hint="Write 0 or 1.",
                position=statement.position,
            )
        if name == "oneline" and statement.kind == "SYNTAX":
            continue
        if name in _OF_QUERY_TREE and statement.kind == "QUERY TREE":
            continue
        if name not in _OPTIONS and name not in _REFUSED_OPTIONS:
            raise UnknownSetting(
                f"EXPLAIN does not know {name}.",
                hint=f"It knows {', '.join(_OPTIONS)}.",
                position=statement.position,
            )
        if name in _REFUSED_OPTIONS or statement.kind in _WITHOUT_OPTIONS:
            raise NotSupportedError(
                f"EXPLAIN {statement.kind} does not take {name}.",
                hint=f"EXPLAIN PLAN takes {', '.join(_OPTIONS)}; QUERY TREE, graphs and the passes of ClickHouse's analyzer are not there.",
                position=statement.position,
            )


def _syntax(statement: nodes.Node, one_line: bool, context: StatementContext) -> str:
    """Return the text of a query with its operators as calls, of INSERT and CREATE as it is.

    Raises SyntaxError for other statements."""
    if isinstance(statement, nodes.Query):
        scope = context.scope(context.reading_snapshot())
        return show_calls(
            statement, lambda node: str(bind_value(node, scope).type), one_line=one_line
        )
    assert isinstance(statement, nodes.Statement)
    if isinstance(statement, nodes.Insert) and statement.query is None and not statement.format:
        return f"{to_sql(statement)} FORMAT Values"
    if not isinstance(statement, (*_EXPLAINED_ELSEWHERE, nodes.CreateDictionary)):
        raise SyntaxError(
            "EXPLAIN SYNTAX takes queries, INSERT and CREATE.", position=statement.position
        )
    if one_line or not isinstance(statement, nodes.CreateTable | nodes.CreateView):
        return to_sql(statement)
    return show_statement(statement)


def _records(text: str, statement: nodes.Node, context: StatementContext) -> list[str]:
    """Return the text of EXPLAIN SYNTAX as rows: one, or the lines without explain_syntax_single_record, which the
    statement itself may set."""
    own = statement.settings if isinstance(statement, nodes.Select | nodes.SetOperation) else ()
    settings = context.settings.with_changes({s.name: s.value for s in own})
    return [text] if settings.boolean("explain_syntax_single_record") else text.split("\n")


def _plan(
    statement: nodes.Node, options: Mapping[str, object], context: StatementContext
) -> list[str]:
    """Return the lines of the optimized plan; with `indexes`, of the index analysis. With `json` it
    is one document."""
    plan, snapshot, context = _planned(statement, context)
    as_json, header = bool(options.get("json")), bool(options.get("header"))
    if options.get("indexes"):
        execution = context.execution(snapshot)
        execution.projections = context.settings.boolean("optimize_use_projections")
        if not as_json:
            return explain_indexes(plan, execution)
        return explain_indexes(
            plan, execution, lambda p, annotate: [explain_json(p, annotate, header=header)]
        )
    return [explain_json(plan, header=header)] if as_json else explain_plan(plan)


def _planned(
    statement: nodes.Node, context: StatementContext
) -> tuple[Plan, Snapshot, StatementContext]:
    """Return the plan of a SELECT, the snapshot to read, and the context with its settings.

    Raises IncorrectQuery for INSERT and CREATE, SyntaxError for other statements."""
    if not isinstance(statement, nodes.Query):
        kind = IncorrectQuery if isinstance(statement, _EXPLAINED_ELSEWHERE) else SyntaxError
        raise kind(
            "Only SELECT is supported for EXPLAIN.",
            hint="EXPLAIN SYNTAX and EXPLAIN AST take other statements.",
            position=statement.position,
        )
    context = select.with_query_settings(statement, context)
    snapshot = context.reading_snapshot()
    return select.plan_query(statement, context, snapshot), snapshot, context


def _analyzed(statement: nodes.Node, context: StatementContext) -> list[str]:
    """Run the query, drop its rows, and return the lines of its plan with what was measured."""
    plan, snapshot, context = _planned(statement, context)
    execution = context.execution(snapshot)
    execution.profile = QueryProfile()
    begun = time.perf_counter()
    result = select.run_plan(plan, execution, context)
    for _ in result.batches():
        pass
    result.close()
    seconds = time.perf_counter() - begun
    return analyzed_lines(plan, execution, seconds, estimator_of(execution).rows)


def _estimate(statement: nodes.Node, context: StatementContext) -> Result:
    """Return a row for each table of which the query would read rows. Raises IncorrectQuery."""
    if not isinstance(statement, nodes.Query):
        raise IncorrectQuery(
            "Only SELECT is supported for EXPLAIN ESTIMATE.", position=statement.position
        )
    plan, snapshot, context = _planned(statement, context)
    rows = estimate_reads(plan, context.execution(snapshot))
    columns: list[list[object]] = [[row[at] for row in rows] for at in range(len(_ESTIMATED))]
    return from_columns(_ESTIMATED, [STRING, STRING, UINT64, UINT64, UINT64], columns)


_EXPLAINED_ELSEWHERE = (
    nodes.Insert,
    nodes.CreateTable,
    nodes.CreateView,
    nodes.CreateMaterializedView,
    nodes.CreateDatabase,
)
"""Statements that ClickHouse's EXPLAIN parses, without a plan to show."""
_ESTIMATED = ("database", "table", "parts", "rows", "marks")
_VIEW_COLUMNS = ("item", "provable", "because", "fix")
_DEPENDENCY_COLUMNS = ("level", "kind", "name", "reached_from", "how")
_PROVENANCE_COLUMNS: Mapping[str, DataType] = {
    "part": STRING,
    "part_rows": UINT64,
    "view": STRING,
    "source": STRING,
    "first_block": UINT64,
    "last_block": UINT64,
    "rows": UINT64,
    "commit": UINT64,
    "kind": STRING,
    "query_id": STRING,
    "time": Nullable(DateTime64(3)),
    "statement": STRING,
}


def _dependencies(name: nodes.Node, context: StatementContext) -> Result:
    """Return a row for each object that a change of `name` affects, by level."""
    assert isinstance(name, nodes.TableName)
    snapshot = context.reading_snapshot()
    dependents = impact_of(context.require(snapshot, name), snapshot)
    columns = [
        [getattr(dependent, column) for dependent in dependents] for column in _DEPENDENCY_COLUMNS
    ]
    return from_columns(_DEPENDENCY_COLUMNS, [UINT64, STRING, STRING, STRING, STRING], columns)


def _provenance(statement: nodes.Node, context: StatementContext) -> Result:
    """Return a row for each source block that the selected rows of a view's target come from. The
    query's select list does not matter."""
    query, reference = _target_select(statement)
    context = select.with_query_settings(query, context)
    snapshot = context.reading_snapshot()
    target = context.require_table(snapshot, reference.table, "EXPLAIN PROVENANCE")
    conditions = tuple(c for c in (query.prewhere, query.where) if c is not None)
    condition = conditions[0] if conditions else None
    if len(conditions) > 1:
        condition = nodes.Function("and", conditions)
    names = _part_names(query, replace(reference, final=False), condition, context, snapshot)
    parts = [part for part in snapshot.parts(target.id) if part.rows and part.name in names]
    origins = provenance(target, parts, condition, snapshot, context.services)
    columns = [
        [
            moment_if_any(origin.created_ms) if name == "time" else getattr(origin, name)
            for origin in origins
        ]
        for name in _PROVENANCE_COLUMNS
    ]
    return from_columns(list(_PROVENANCE_COLUMNS), list(_PROVENANCE_COLUMNS.values()), columns)


def _part_names(
    query: nodes.Select,
    reference: nodes.TableReference,
    condition: nodes.Expression | None,
    context: StatementContext,
    snapshot: Snapshot,
) -> set[str]:
    """Return the names of the parts that have rows for which the condition is true. Without FINAL:
    every part that contains rows of a key counts."""
    result = select.run_at(
        nodes.Select(
            columns=(nodes.Identifier(("_part",)),),
            distinct=True,
            where=condition,
            source=reference,
            with_items=query.with_items,
        ),
        replace(context, settings=context.settings.with_changes({"final": False})),
        snapshot,
    )
    names = {row for batch in result.batches() for row in batch.column(0).to_pylist()}
    result.close()
    return names


def _target_select(statement: nodes.Node) -> tuple[nodes.Select, nodes.TableReference]:
    """Return the SELECT and its one table; raise NotSupportedError for any other query."""
    if isinstance(statement, nodes.Select) and isinstance(statement.source, nodes.TableReference):
        return statement, statement.source
    raise NotSupportedError(
        "EXPLAIN PROVENANCE takes SELECT … FROM a table WHERE …, without joins and subqueries in FROM.",
        hint="Name the target of the view; system.views has target_table.",
        position=statement.position,
    )


def _view(statement: nodes.Node, context: StatementContext) -> Result:
    """Return a row for each part of a view's definition: (item, provable, because, fix)."""
    items = _judged_items(statement, context)
    columns: list[list[object]] = [
        [item.name for item in items],
        [int(item.provable) for item in items],
        [item.because for item in items],
        [item.fix for item in items],
    ]
    return from_columns(_VIEW_COLUMNS, [STRING, UINT8, STRING, STRING], columns)


def _judged_items(statement: nodes.Node, context: StatementContext) -> Sequence[JudgedItem]:
    """Return the judgement of an existing view, or of a CREATE statement that is not run.

    Raises NotSupportedError and UnsupportedMethod."""
    if isinstance(statement, nodes.CreateMaterializedView):
        return judged_statement(statement, context).items
    if not isinstance(statement, nodes.TableName):
        raise NotSupportedError(
            "EXPLAIN VIEW takes the name of a materialized view, or its CREATE statement.",
            hint="EXPLAIN shows the plan of a SELECT.",
            position=statement.position,
        )

    snapshot = context.reading_snapshot()
    view = context.require(snapshot, statement)
    if not isinstance(view, MaterializedView):
        raise UnsupportedMethod(
            f"{view.database}.{view.name} is not a materialized view.",
            hint="system.views names them all.",
            position=statement.position,
        )
    return judged_items(view, snapshot)


def _text_result(lines: list[str]) -> Result:
    """Return the lines as the column `explain`, a row a line."""
    return from_columns(["explain"], [STRING], [lines])
