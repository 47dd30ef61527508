"""Finds the rows of parts that match a condition, and evaluates new values for their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_expression, bind_query
from olapdb.compute.batches import single_chunk
from olapdb.errors import DataError
from olapdb.execute import ExecutionContext, run
from olapdb.functions import store_column
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.part import Part
from olapdb.model.schema import Column, Table
from olapdb.optimize import optimize
from olapdb.plan.nodes import Plan
from olapdb.plan.tree import all_scans
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.types import DataType, Decimal, plain
from olapdb.types.arrow_values import scalar_of, to_numpy

ROWS_AT_ONCE = 4_194_304
"""Rows of parts on which a condition is evaluated together."""

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None
Assignments: TypeAlias = Sequence[tuple[str, nodes.Expression]]


def matching_rows(
    table: Table,
    parts: Sequence[Part],
    where: nodes.Expression | None,
    assignments: Assignments,
    context: TriggerContext,
    parameters: Parameters,
) -> Iterator[tuple[Part, pa.Table]]:
    """Yield each of these parts that has matching rows, with their `_part_offset` and the assigned
    values under the columns' names.

    Evaluate the condition on parts of up to ROWS_AT_ONCE rows together, which bounds the memory.
    Where the condition or a value also reads the table in a subquery, evaluate it on all parts at
    once.
    """
    for _, value in assignments:  # names an aggregate in the error
        bind_expression(value, table, _scope(context, parameters))
    plan = _plan(table, where, assignments, context, parameters)
    names = ["_part", "_part_offset", *(name for name, _ in assignments)]
    types = dict(zip(names, plan.types, strict=True))
    for group in _part_groups(parts) if _reads_table_once(plan, table) else [parts]:
        matches = run_on_parts(plan, table, group, context).read_all().rename_columns(names)
        matches = converted_values(matches, table, types, context)
        matched = set(pc.unique(matches.column("_part")).to_pylist())
        for part in group:
            if part.name in matched:
                matches_of_part = matches.filter(
                    pc.equal(matches.column("_part"), scalar_of(part.name, pa.string()))
                )
                yield part, matches_of_part.combine_chunks()


def matching_offsets(
    context: TriggerContext,
    table: Table,
    parts: Sequence[Part],
    where: nodes.Expression | None,
    parameters: Parameters,
) -> list[tuple[Part, np.ndarray]]:
    """Return each of these parts that has matching rows, with the offsets of the rows in it
    (int64, unordered). Holds eight bytes for each matching row."""
    by_name = {part.name: part for part in parts}
    offsets: dict[str, list[np.ndarray]] = {}
    plan = _plan(table, where, (), context, parameters)
    for batch in run_on_parts(plan, table, parts, context).batches():
        names = batch.column(0).dictionary_encode()
        rows = to_numpy(batch.column(1)).astype(np.int64)
        codes = to_numpy(names.indices)
        for code, name in enumerate(names.dictionary.to_pylist()):
            if name in by_name:
                offsets.setdefault(name, []).append(rows[codes == code])
    return [(by_name[name], np.concatenate(pieces)) for name, pieces in offsets.items()]


def _plan(
    table: Table,
    where: nodes.Expression | None,
    assignments: Assignments,
    context: TriggerContext,
    parameters: Parameters,
) -> Plan:
    """Return the plan that selects the part, the offset and the new values of each matching row."""
    values = tuple(
        nodes.Alias(_decimal_literal(value, _column(table, name).type), f"\0{name}")
        for name, value in assignments
    )
    query = nodes.Select(
        columns=(nodes.Identifier(("_part",)), nodes.Identifier(("_part_offset",)), *values),
        source=nodes.TableReference(nodes.TableName(table.name, table.database)),
        where=where,
    )
    return query_plan(query, context, parameters)


def query_plan(query: nodes.Select, context: TriggerContext, parameters: Parameters = None) -> Plan:
    """Return the optimized plan of a query over the trigger's snapshot."""
    return optimize(bind_query(query, _scope(context, parameters)))


def _scope(context: TriggerContext, parameters: Parameters) -> BindScope:
    """Return the scope that binds a condition in the trigger's snapshot, database and settings."""
    return BindScope(
        snapshot=context.snapshot,
        database=context.environment.database,
        settings=context.settings,  # type: ignore[arg-type]
        environment=context.environment,
        parameters=parameters or (),
    )


def _reads_table_once(plan: Plan, table: Table) -> bool:
    """Return whether no subquery of the plan reads the table too. Such a subquery must see all
    parts."""
    return sum(1 for scan in all_scans(plan.root) if scan.table.id == table.id) == 1


def run_on_parts(
    plan: Plan, table: Table, parts: Sequence[Part], context: TriggerContext
) -> Result:
    """Execute the plan on these parts, or on all of the table if a subquery reads it too."""
    execution = ExecutionContext(
        snapshot=context.snapshot,
        store=context.store,
        settings=context.settings,
        environment=context.environment,
        cancelled=context.cancelled,
        parts={table.id: tuple(parts)} if _reads_table_once(plan, table) else {},
    )
    return run(plan, execution)


def _decimal_literal(value: nodes.Expression, target: DataType) -> nodes.Expression:
    """Return a literal for a Decimal column as its text, so that it is parsed exactly, as in
    VALUES."""
    if isinstance(plain(target), Decimal) and isinstance(value, nodes.Literal):
        return nodes.Literal(value.text) if isinstance(value.value, float) and value.text else value
    return value


def converted_values(
    matches: pa.Table, table: Table, types: Mapping[str, DataType], context: TriggerContext
) -> pa.Table:
    """Convert the assigned values to their columns' types. Raise a DataError that names the
    column where the conversion would change a value."""
    for at, name in enumerate(matches.column_names):
        column = table.column(name)
        if column is None:  # _part, _part_offset
            continue
        values = single_chunk(matches.column(at))
        try:
            converted = store_column(values, types[name], column.type, context.environment)
        except DataError as error:
            place = f"Column {name} of {table.database}.{table.name}"
            raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
        matches = matches.set_column(at, name, converted)
    return matches


def in_partition(
    where: nodes.Expression | None, partition_id: str | None
) -> nodes.Expression | None:
    """Restrict the condition to one partition; `partition_id` None returns it unchanged."""
    if partition_id is None:
        return where
    same = nodes.Function(
        "equals", (nodes.Identifier(("_partition_id",)), nodes.Literal(partition_id))
    )
    return same if where is None else nodes.Function("and", (same, where))


def _part_groups(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Group the parts, in order, up to ROWS_AT_ONCE rows a group."""
    group: list[Part] = []
    for part in parts:
        if group and sum(waiting.rows for waiting in group) + part.rows > ROWS_AT_ONCE:
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _column(table: Table, name: str) -> Column:
    """Return the table's column of that name, which must exist."""
    column = table.column(name)
    assert column is not None
    return column
