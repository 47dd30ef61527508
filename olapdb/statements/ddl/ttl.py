"""TTL in CREATE TABLE and ALTER TABLE: the checks of its expressions, and MATERIALIZE TTL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from olapdb import types
from olapdb.bind import bind_expression
from olapdb.bind.syntax import rewrite
from olapdb.bind.syntax import walk as walk_syntax
from olapdb.dml.ttl import apply_ttl
from olapdb.errors import (
    BadArguments,
    BadTtlExpression,
    IllegalTypeOfColumnForFilter,
    IncorrectQuery,
    NotSupportedError,
)
from olapdb.model.schema import Table
from olapdb.plan.expressions import Call, Expression, columns_of, walk
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.dictionary_functions import refuse_dictionaries
from olapdb.sql.format import to_sql
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.column_checks import reads_a_table
from olapdb.statements.dml.partitions import find_partition

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
        _check_rule(item, table, scope)
    if sum(1 for item in items if item.where is None) > 1:
        raise BadTtlExpression(
            "More than one DELETE TTL expression without WHERE expression is not allowed.",
            hint="Give all but one of them a WHERE.",
            position=items[-1].position,
        )
    return ", ".join(rule_text(item) for item in items)


def rule_text(item: nodes.TtlItem) -> str:
    """Return the SQL text of a rule."""
    text = to_sql(rewrite(item.expression, _interval_as_function))
    if item.where is None:
        return text
    return f"{text} WHERE {to_sql(rewrite(item.where, _interval_as_function))}"


def _interval_as_function(node: nodes.Node) -> nodes.Node | None:
    """Return `INTERVAL 1 DAY` as toIntervalDay(1), the form that ClickHouse shows; None for other
    nodes."""
    if isinstance(node, nodes.IntervalLiteral):
        return nodes.Function(f"toInterval{node.unit}", (node.expression,))
    return None


def _check_rule(item: nodes.TtlItem, table: Table, scope: BindScope) -> None:
    """Raise an error for a rule that cannot work: another action than DELETE, a subquery, no
    column, a result that is no date or time, a WHERE that is no condition."""
    if item.action != "DELETE":
        actions = {"GROUP BY": "GROUP BY", "RECOMPRESS": "RECOMPRESS", "MOVE": f"TO {item.detail}"}
        raise NotSupportedError(
            f"TTL … {actions[item.action]} is not supported: TTL deletes rows.",
            hint="A materialized view keeps aggregates of rows that leave by TTL.",
            position=item.position,
        )
    for expression in filter(None, (item.expression, item.where)):
        refuse_dictionaries(expression, "TTL")
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


def _check_pure(bound: Expression, text: str, item: nodes.TtlItem) -> None:
    """Raise BadArguments if the expression calls a function that is not pure."""
    for subexpression in walk(bound):
        if isinstance(subexpression, Call) and subexpression.function.volatility != "pure":
            raise BadArguments(
                "TTL expression cannot contain non-deterministic functions, but contains function"
                f" {subexpression.name}.",
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
    """Run MATERIALIZE TTL: remove expired rows now, in one commit; return their number. Raise
    IncorrectQuery for a table without TTL."""
    snapshot = context.snapshot()
    table = context.require_table(snapshot, name, "MATERIALIZE TTL")
    if not table.ttl:
        raise IncorrectQuery(
            f"Cannot MATERIALIZE TTL as there is no TTL set for table {table.database}.{table.name}.",
            hint="ALTER TABLE … MODIFY TTL sets one.",
            position=name.position,
        )
    partition_id = None
    if partition is not None:
        partition_id = find_partition(partition, table, context, snapshot)
    result = apply_ttl(context.origin("TTL"), table.id, partition_id=partition_id)
    return Result(affected_rows=result.rows)
