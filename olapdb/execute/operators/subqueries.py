"""Subqueries used as a value or as the set of an IN, and dictionaries: they run once, before the
enclosing plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.compute.context import ExecutionContext, LargeSet
from olapdb.compute.hash_table import Lookup
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_buffer import RowBuffer
from olapdb.compute.spill.budget import SpillBudget
from olapdb.errors import IncorrectResultOfScalarSubquery
from olapdb.execute.operators.row_limits import check_bytes, check_rows, has_limit
from olapdb.functions import default_value
from olapdb.lazy import lazy_modules
from olapdb.plan import nodes
from olapdb.plan.expressions import DictionaryCall, InSubquery, ScalarSubquery, walk
from olapdb.plan.tree import all_expressions, expressions_of
from olapdb.types import Array, DataType, Map, Tuple, is_nullable

if TYPE_CHECKING:
    from olapdb.compute import dictionary_rows
    from olapdb.execute.operators import dictionaries
    from olapdb.execute.spill import large_sets
else:
    (dictionary_rows,) = lazy_modules("olapdb.compute", "dictionary_rows")
    (dictionaries,) = lazy_modules("olapdb.execute.operators", "dictionaries")
    (large_sets,) = lazy_modules("olapdb.execute.spill", "large_sets")

RunNode = Callable[[nodes.Node, ExecutionContext], Iterator[pa.RecordBatch]]


def answer_subqueries(node: nodes.Node, context: ExecutionContext, run_node: RunNode) -> None:
    """Run every subquery of the plan's expressions, inner ones first.

    The answers go to `context.subqueries`; a subquery with an answer is not run again. Those of the
    repeated step of WITH RECURSIVE wait until it runs."""
    answers = context.subqueries
    children = (node.first,) if isinstance(node, nodes.RecursiveUnion) else node.children()
    for child in children:
        answer_subqueries(child, context, run_node)
    for expression in expressions_of(node):
        for part in walk(expression):
            match part:
                case ScalarSubquery() | InSubquery() | DictionaryCall() if part.number in answers:
                    pass
                case ScalarSubquery(type=data_type, plan=plan, number=number):
                    answer_subqueries(plan, context, run_node)
                    answers[number] = _scalar(plan, data_type, context, run_node)
                case InSubquery(plan=plan, number=number):
                    answers[number] = _set(plan, context, run_node)
                case DictionaryCall(plan=plan, shape=shape, number=number):
                    answers[number] = dictionaries.dictionary_rows(
                        plan, shape, context, partial(_buffered, plan, context, run_node)
                    )


def forget_answers(
    root: nodes.Node, context: ExecutionContext, changed: Callable[[nodes.Node], bool]
) -> None:
    """Forget the answers of those subqueries and dictionaries of `root` for whose plans `changed` is true: they read
    other rows now. Their memory is no longer counted."""
    for expression in all_expressions(root):
        if isinstance(expression, ScalarSubquery | InSubquery | DictionaryCall) and changed(
            expression.plan
        ):
            answer = context.subqueries.pop(expression.number, None)
            if isinstance(answer, Lookup):
                context.memory.add(-answer.nbytes, "the set of an IN")
            elif isinstance(expression, DictionaryCall) and isinstance(
                answer, dictionary_rows.DictionaryRows
            ):
                context.memory.add(-answer.nbytes, dictionaries.DICTIONARY)


def with_large_sets_joined(root: nodes.Node, context: ExecutionContext) -> nodes.Node:
    """Return a plan whose subqueries have answers with joins in place of the sets that did not fit the
    memory; the same object if each did."""
    if not any(isinstance(answer, LargeSet) for answer in context.subqueries.values()):
        return root
    return large_sets.join_large_sets(root, context)


def _scalar(
    plan: nodes.Node, data_type: DataType, context: ExecutionContext, run_node: RunNode
) -> pa.Scalar:
    """Return the subquery's only value, of several columns a tuple; NULL where there is no row.

    Raises IncorrectResultOfScalarSubquery for more than one row, and for none where an Array, Map or several columns
    cannot be NULL; other types that cannot give their default."""
    batches: list[pa.RecordBatch] = []
    for batch in run_node(with_large_sets_joined(plan, context), context):
        if batch.num_rows:
            batches.append(batch)
        if sum(b.num_rows for b in batches) > 1:
            raise IncorrectResultOfScalarSubquery(
                "A scalar subquery returned more than one row.",
                hint="Aggregate it, or add LIMIT 1, or use IN instead of =.",
            )
    if not batches:
        if is_nullable(data_type):
            return pa.scalar(None, data_type.arrow)
        if isinstance(data_type, Array | Map | Tuple):
            raise IncorrectResultOfScalarSubquery(
                f"A scalar subquery returned no row, and {data_type} cannot be NULL.",
                hint="One column with a tuple of the values, SELECT (a, b), is NULL without rows."
                if isinstance(data_type, Tuple)
                else "Aggregate it: any(x) of no rows is empty.",
            )
        return default_value(data_type)
    row = batches[0]
    if row.num_columns == 1:
        value = row.column(0)
    else:
        value = pa.StructArray.from_arrays(row.columns, fields=list(data_type.arrow))
    if value.type != data_type.arrow:
        value = value.cast(data_type.arrow)
    return value[0]


def _buffered(
    plan: nodes.Node, context: ExecutionContext, run_node: RunNode, account: MemoryAccount
) -> RowBuffer:
    """Return all rows of a plan, counted on the account."""
    answer_subqueries(plan, context, run_node)
    buffer = RowBuffer(plan.schema, account)
    for batch in run_node(with_large_sets_joined(plan, context), context):
        buffer.add(batch)
    return buffer


def _set(plan: nodes.Node, context: ExecutionContext, run_node: RunNode) -> Lookup | LargeSet:
    """Return the set of an IN; it counts against the memory limit until the query ends. Where a join would
    spill its rows the set is a LargeSet."""
    what = "the set of an IN"
    answer_subqueries(plan, context, run_node)
    with context.memory.account(what) as account:
        buffer = RowBuffer(plan.schema, account)
        budget = SpillBudget("join", context, account)
        types = [field.type for field in plan.schema]
        may_be_large = not has_limit("max_rows_in_set", context)
        for batch in run_node(with_large_sets_joined(plan, context), context):
            if may_be_large and buffer.would_exceed(budget, batch, types):
                return LargeSet(context.memory.limit_bytes)
            buffer.add(batch)
        lookup = buffer.build_lookup(threads=context.threads)
    check_rows(lookup.count, "max_rows_in_set", context)
    check_bytes(lookup.nbytes, "max_rows_in_set", context)
    context.memory.add(lookup.nbytes, what)
    return lookup
