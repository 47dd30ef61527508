"""TTL in CREATE TABLE and ALTER TABLE: the checks of its expressions, and MATERIALIZE TTL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb import types
from olapdb.bind import bind_expression, bind_query
from olapdb.bind.syntax import rewrite
from olapdb.bind.syntax import walk as walk_syntax
from olapdb.dml.ttl import apply_ttl
from olapdb.dml.ttl_group import grouping_keys, grouping_query
from olapdb.engine.expiry import rule_expressions
from olapdb.engine.layout import TableLayout
from olapdb.errors import (
    BadArguments,
    BadTtlExpression,
    IllegalAggregation,
    IllegalColumn,
    IllegalTypeOfColumnForFilter,
    IncorrectQuery,
    NoSuchColumn,
    NotAnAggregate,
    NotSupportedError,
    in_clause,
)
from olapdb.maintenance.merge_planner import recompress
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import Table
from olapdb.plan.expressions import Expression, columns_of, impure_calls, walk
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.literals import quote_name
from olapdb.sql.parser import parse_expression
from olapdb.sql.stored_expressions import refuse_outside_values
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.column_checks import reads_a_table, refuse_aliases_of_settings
from olapdb.statements.dml.partitions import find_partition
from olapdb.storage.codec import default_codec_text
from olapdb.views.provability.expressions import volatile_names

if TYPE_CHECKING:
    from olapdb.bind import BindScope


def ttl_text(items: Sequence[nodes.TtlItem], table: Table, scope: BindScope) -> str:
    """Check the TTL rules over the table's columns; return the text for `Table.ttl`, "" without
    rules.

    Raises BadTtlExpression or BadArguments as ClickHouse does, NotSupportedError for TTL with
    another action than DELETE, and the binder's errors.
    """
    if items and not table.engine.is_merge_tree:
        raise BadArguments(
            f"Engine {table.engine.name} has no TTL.",
            hint="Use a table of the MergeTree family.",
            position=items[0].position,
        )
    for item in items:
        with in_clause(f"TTL {rule_text(item)}", has_positions=True):
            _check_rule(item, table, scope)
    deleting = [item for item in items if item.action == "DELETE"]
    if sum(1 for item in deleting if item.where is None) > 1:
        raise BadTtlExpression(
            "More than one DELETE TTL expression without WHERE expression is not allowed.",
            hint="Give all but one of them a WHERE.",
            position=items[-1].position,
        )
    return ", ".join(rule_text(item) for item in items)


def column_ttl_text(expression: nodes.Expression | None) -> str:
    """Return the text for `Column.ttl`, "" for None."""
    return "" if expression is None else to_sql(rewrite(expression, _interval_as_function))


def check_column_ttls(table: Table, scope: BindScope) -> None:
    """Check the TTLs of the table's columns.

    Raises IllegalColumn for a column of a key or of the engine, BadArguments and BadTtlExpression as
    ClickHouse does, NotSupportedError where the column's default is no fixed value of its row.
    """
    expiring = [column for column in table.columns if column.ttl]
    if not expiring:
        return
    if not table.engine.is_merge_tree:
        raise BadArguments(
            f"Engine {table.engine.name} doesn't support TTL clause: column {expiring[0].name} has"
            " one.",
            hint="Use a table of the MergeTree family.",
        )
    layout = TableLayout(table)
    keys = layout.sorting_columns | layout.partition_columns
    for column in expiring:
        if column.name in keys or column.name in table.engine.arguments:
            raise IllegalColumn(
                f"Trying to set TTL for key column {column.name}.",
                hint="Rows are placed and combined by it: a TTL of the table removes whole rows.",
            )
        if not column.stored:
            raise BadTtlExpression(
                f"Column {column.name} is {column.default_kind}: it stores nothing that could expire.",
                hint="Leave its TTL out.",
            )
        _check_rule(nodes.TtlItem(parse_expression(column.ttl)), table, scope)
        if column.default:
            default = bind_expression(parse_expression(column.default), table, scope)
            volatile = volatile_names(walk(default))
            if volatile:
                raise NotSupportedError(
                    f"A TTL of column {column.name} is not supported: its {column.default_kind} calls"
                    f" {', '.join(volatile)}, which gives another value each time.",
                    hint="Give it a default that follows from the row.",
                )


def rule_text(item: nodes.TtlItem) -> str:
    """Return the SQL text of a rule, as the engine stores and shows it."""
    return to_sql(rewrite(item, _interval_as_function))


def _interval_as_function(node: nodes.Node) -> nodes.Node | None:
    """Return `INTERVAL 1 DAY` as toIntervalDay(1), the form that ClickHouse shows; None for other
    nodes."""
    if isinstance(node, nodes.IntervalLiteral):
        return nodes.Function(f"toInterval{node.unit}", (node.expression,))
    return None


def _check_rule(item: nodes.TtlItem, table: Table, scope: BindScope) -> None:
    """Raise an error for a rule that cannot work: an action that is not supported, a subquery, no
    column, a result that is no date or time, a WHERE that is no condition, groups that cannot be
    made."""
    if item.action == "MOVE":
        only = item.detail.endswith("'default'")
        raise (NotSupportedError if only else BadTtlExpression)(
            f"TTL … TO {item.detail} is not supported: a warehouse is one folder, on one disk.",
            hint="TTL deletes, groups or recompresses rows.",
            position=item.position,
        )
    if item.action == "RECOMPRESS":
        default_codec_text(item.detail)
    for expression in rule_expressions(item):
        refuse_outside_values(expression, "TTL")
        refuse_aliases_of_settings(table, to_sql(expression), "TTL")
        if any(isinstance(node, nodes.Subquery | nodes.Query) for node in walk_syntax(expression)):
            raise NotSupportedError(
                "A subquery in TTL is not supported.",
                hint="Decide by the row's own columns, or DELETE FROM … WHERE by a schedule.",
                position=item.position,
            )
    bound = bind_expression(item.expression, table, scope)
    text = to_sql(item.expression)
    _check_pure(bound, text, item)
    if not columns_of(bound):
        raise BadArguments(
            f"TTL expression {text} does not depend on any of the columns of the table.",
            hint="Say from when on a row's time runs, as in TTL day + INTERVAL 1 MONTH.",
            position=item.position,
        )
    if not _is_time(bound.type):
        raise BadTtlExpression(
            "TTL expression result column should have Date, Date32, DateTime or DateTime64 type,"
            f" but has {bound.type}.",
            hint="Say when a row expires, as in TTL day + INTERVAL 1 MONTH.",
            position=item.position,
        )
    if item.action == "GROUP BY":
        _check_groups(item, table, scope)
    if item.where is not None:
        where = bind_expression(item.where, table, scope)
        if reads_a_table(where):
            raise NotSupportedError(
                "A subquery in TTL is not supported.",
                hint="Decide by the row's own columns, or DELETE FROM … WHERE by a schedule.",
                position=item.position,
            )
        _check_pure(where, to_sql(item.where), item)
        if not isinstance(types.plain(where.type), types.Integer | types.Boolean):
            raise IllegalTypeOfColumnForFilter(
                f"TTL … WHERE {to_sql(item.where)} is of type {where.type}, not a condition.",
                position=item.position,
            )


def _check_groups(item: nodes.TtlItem, table: Table, scope: BindScope) -> None:
    """Raise an error for GROUP BY … SET that cannot work: keys that do not begin the primary key, a
    column that is set twice, is no stored one or is not set to an aggregate, and rows that would
    leave their partition."""
    keys = [to_sql(key) for key in grouping_keys(item)]
    primary = [key.expression for key in table.sorting_key[: table.primary_key]]
    if [_plain_text(key) for key in keys] != [_plain_text(key) for key in primary[: len(keys)]]:
        raise BadTtlExpression(
            "TTL Expression GROUP BY key should be a prefix of primary key.",
            hint=f"The primary key is ({', '.join(primary)}).",
            position=item.position,
        )
    partition = TableLayout(table).partition_columns
    seen: set[str] = set()
    for name, value in item.assignments:
        column = table.column(name)
        if column is None or not column.stored:
            raise NoSuchColumn(
                f"There is no physical column {name} in table.", position=item.position
            )
        if name in seen:
            raise BadTtlExpression(
                f"Multiple aggregations set for one column {name} in TTL Expression.",
                position=item.position,
            )
        seen.add(name)
        if name in partition and to_sql(value) not in _keeping_partition(name):
            raise BadTtlExpression(
                f"TTL … SET {name} = {to_sql(value)} may move rows to another partition.",
                hint=f"SET {name} to its min, max, any or anyLast.",
                position=item.position,
            )
    for column in table.stored_columns:
        if column.name not in seen and isinstance(column.type, types.AggregateFunction):
            raise BadTtlExpression(
                f"TTL … GROUP BY does not say what becomes of the states of column {column.name}.",
                hint=f"SET {column.name} = {column.type.function}MergeState({column.name}).",
                position=item.position,
            )
    overlay = OverlaySnapshot.of(scope.snapshot, table)
    try:
        bind_query(grouping_query(table, item, None), replace(scope, snapshot=overlay))
    except (NotAnAggregate, IllegalAggregation) as error:
        raise BadTtlExpression(error.message, hint=error.hint, position=item.position) from error


def _keeping_partition(name: str) -> frozenset[str]:
    """Return the aggregate calls over the column, as text, whose result is one of its values, so
    that a row stays in its partition: `min(x)`, `max(x)`, `any(x)`, `anyLast(x)`."""
    quoted = quote_name(name)
    return frozenset(f"{function}({quoted})" for function in ("min", "max", "any", "anyLast"))


def _plain_text(expression: str) -> str:
    """Return the expression in the formatter's spelling, for comparison: texts of equal syntax
    trees become equal."""
    return to_sql(rewrite(parse_expression(expression), _interval_as_function))


def _check_pure(bound: Expression, text: str, item: nodes.TtlItem) -> None:
    """Raise BadArguments if the expression calls a function that is not pure."""
    for call in impure_calls(bound):
        raise BadArguments(
            "TTL expression cannot contain non-deterministic functions, but contains function"
            f" {call.name}.",
            hint=f"{text} has to follow from the row's own columns.",
            position=item.position,
        )


def _is_time(data_type: types.DataType) -> bool:
    """Return whether the type is a date or time that is not Nullable."""
    return not types.is_nullable(data_type) and isinstance(
        types.plain(data_type), types.Date | types.Date32 | types.DateTime | types.DateTime64
    )


def ttl_after_modify(action: nodes.ModifyTtl, table: Table, scope: BindScope) -> str:
    """Return the table's TTL text after MODIFY TTL or REMOVE TTL. Raise BadArguments for removing a
    TTL that does not exist."""
    if not action.ttl and not table.ttl:
        raise BadArguments(
            f"{table.database}.{table.name} doesn't have any table TTL expression, cannot remove.",
            position=action.position,
        )
    return ttl_text(action.ttl, table, scope)


def materialize_ttl(
    name: nodes.TableName, partition: nodes.PartitionReference | None, context: StatementContext
) -> Result:
    """Run MATERIALIZE TTL: remove expired rows now, in one commit, and recompress parts; return the
    number of removed rows. Raise IncorrectQuery for a table without TTL."""
    snapshot = context.snapshot()
    table = context.require_table(snapshot, name, "MATERIALIZE TTL")
    if not table.expires:
        raise IncorrectQuery(
            f"Cannot MATERIALIZE TTL as there is no TTL set for table {table.database}.{table.name}.",
            hint="ALTER TABLE … MODIFY TTL sets one.",
            position=name.position,
        )
    partition_id = None
    if partition is not None:
        partition_id = find_partition(partition, table, context, snapshot)
    result = apply_ttl(context.origin("TTL"), table.id, partition_id=partition_id)
    recompress(context.origin("TTL"), table.id, partition_id=partition_id)
    return Result(affected_rows=result.rows)
