"""Rules about expressions: each must give the same value whenever its row is computed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from olapdb.bind import BindScope, bind_expression
from olapdb.bind.virtual import PART_COLUMNS
from olapdb.functions.base import Environment
from olapdb.model.part import detached_table
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan import expressions, nodes
from olapdb.plan.expressions import Call, Expression, NameConstant
from olapdb.plan.tree import all_aggregate_calls, all_expressions, all_scans
from olapdb.sql.parser import parse_expression
from olapdb.views.provability.judgement import (
    JudgedItem,
    provable_item,
    refused_if_merging,
    unproven_item,
)
from olapdb.views.provability.parts import BoundDefinition, full_name

_VALUES_OF_THEIR_CHILDREN = (
    expressions.ColumnRef,
    expressions.Constant,
    expressions.NameConstant,
    expressions.Call,
    expressions.Cast,
    expressions.ScalarSubquery,
    expressions.InValues,
    expressions.InSubquery,
    expressions.DictionaryCall,
    expressions.LambdaFunction,
    expressions.LambdaParameter,
)
"""Kinds of expression whose value depends only on their children, the row and the plans in them."""
_MERGE_CLASSES = ("exact", "float", "sketch", "ordered")
ALWAYS_ZERO = "throwIf"
"""A function that must run for each row, like a volatile one, but whose value is always 0."""


def expression_items(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield items about the functions and columns that the query reads in any clause."""
    problems = [
        *_volatile(parts),
        *_momentary(parts),
        *_unknown_kinds(parts),
        *_part_dependent_columns(parts),
        *_late_defaults(parts),
    ]
    yield from problems
    if not problems:
        yield provable_item(
            "expressions", "Each gives the same value whenever its row is computed."
        )


def volatile_names(expressions: Iterable[Expression]) -> tuple[str, ...]:
    """Return the names of the functions among `expressions` that give another value at each
    call."""
    names = (
        call.name
        for call in expressions
        if isinstance(call, Call)
        and call.function.volatility != "pure"
        and call.name != ALWAYS_ZERO
    )
    return tuple(dict.fromkeys(names))


def calls_text(names: Iterable[str]) -> str:
    """Return the functions as a text of calls: "now(), rand()"."""
    return ", ".join(f"{name}()" for name in names)


def bound_default(
    table: Table, text: str, snapshot: Snapshot, environment: Environment
) -> Expression:
    """Bind the text of a default over the table's columns; expand ALIAS columns in it."""
    scope = BindScope(snapshot=snapshot, database=table.database, environment=environment)
    return bind_expression(parse_expression(text), table, scope)


def _volatile(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield an item if the query calls a volatile function."""
    names = volatile_names(all_expressions(parts.plan.root))
    if names:
        yield refused_if_merging(
            parts.merges,
            "expressions",
            f"{calls_text(names)} gives another value when the rows are recomputed.",
            "Store the time in a column of the source (DEFAULT now()) and read that.",
        )


def _momentary(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield an item if an ALIAS column that the query reads has a setting in it that views do not keep."""
    if parts.plan.momentary:
        yield unproven_item(
            "expressions",
            f"It reads {parts.plan.momentary}: a recomputation may give another value.",
            "Write the value into the ALIAS.",
        )


def _unknown_kinds(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield an item for each kind of expression or aggregate that no rule knows."""
    for expression in all_expressions(parts.plan.root):
        if type(expression) not in _VALUES_OF_THEIR_CHILDREN:
            yield unproven_item(
                "expressions", f"{type(expression).__name__} is not known to be decided by its row."
            )
    for call in all_aggregate_calls(parts.plan.root):
        if call.aggregate.merge_class not in _MERGE_CLASSES:
            yield unproven_item("expressions", f"{call.name} is not known to merge.")


def _part_dependent_columns(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield an item if the query reads the name of a table, or a virtual column of its parts.

    A RENAME changes names for older rows. An inserted block has no part yet, while a recomputation
    reads from parts.
    """
    for expression in all_expressions(parts.plan.root):
        if isinstance(expression, NameConstant):
            yield refused_if_merging(
                parts.merges,
                "expressions",
                f"{expression.column} is another name once RENAME gave one.",
                f"Write the name as text, '{expression.value.as_py()}' AS {expression.column}.",
            )
            return
    part_column_names = {virtual.name for virtual in PART_COLUMNS}
    for scan in all_scans(parts.plan.root):
        part_columns = sorted(
            name
            for name in columns_read(scan) & part_column_names
            if scan.table.column(name) is None
        )
        if part_columns:
            yield refused_if_merging(
                parts.merges,
                full_name(scan.table),
                f"{part_columns[0]} tells where a row lies, which merges change.",
                f"Store what tells the rows apart in a column of {scan.table.name}.",
            )
            return


def columns_read(scan: nodes.Scan) -> set[str]:
    """Return the columns that the scan reads, for its output and for its predicate."""
    return {name for _, name in scan.columns} | {name for _, name, _ in scan.predicate_columns}


# --- columns that older parts lack ----------------------------------------------------------------


def _late_defaults(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield an item for each column whose default calls a volatile function and which older parts
    lack: parts written before ADD COLUMN compute the default at each read."""
    tables = {scan.table.id: scan.table for scan in all_scans(parts.plan.root)}
    for table in tables.values():
        read_columns = set().union(
            *(
                columns_read(scan)
                for scan in all_scans(parts.plan.root)
                if scan.table.id == table.id
            )
        )
        for column in table.stored_columns:
            names = _default_functions(parts, table, column) if column.name in read_columns else ()
            if names and has_parts_without(parts.snapshot, table, column):
                yield refused_if_merging(
                    parts.merges,
                    full_name(table),
                    f"Parts of {full_name(table)} are older than its column {column.name}, which"
                    f" is {calls_text(names)} in them, another value at each read.",
                    f"ALTER TABLE {full_name(table)} MATERIALIZE COLUMN {column.name} stores the"
                    " values.",
                )


def _default_functions(parts: BoundDefinition, table: Table, column: Column) -> tuple[str, ...]:
    """Return the volatile functions of a column's default, and of the defaults that it reads."""
    functions: list[str] = []
    waiting, seen = [column.name], set[str]()
    while waiting:
        current = table.column(waiting.pop())
        if current is None or not current.default or current.name in seen:
            continue
        seen.add(current.name)
        bound = bound_default(table, current.default, parts.snapshot, parts.environment)
        functions += volatile_names(expressions.walk(bound))
        waiting += expressions.columns_of(bound)
    return tuple(dict.fromkeys(functions))


def has_parts_without(snapshot: Snapshot, table: Table, column: Column) -> bool:
    """Return whether a part with rows, detached or not, is older than the column."""
    if column.since <= 1:
        return False
    return any(
        part.schema_version < column.since and part.rows
        for table_id in (table.id, detached_table(table.id))
        for part in snapshot.parts(table_id)
    )
