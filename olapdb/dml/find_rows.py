"""The rows of parts that match a condition, with new values for some of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

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
from olapdb.plan.tree import all_scans
from olapdb.sql import nodes
from olapdb.types import DataType, Decimal, plain

ROWS_AT_ONCE = 4_194_304
"""Rows of parts that a condition is asked about in one go."""

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None
Assignments: TypeAlias = Sequence[tuple[str, nodes.Expression]]


def matching_rows(
    table: Table,
    parts: Sequence[Part],
    where: nodes.Expression | None,
    assignments: Assignments,
    around: TriggerContext,
    parameters: Parameters,
) -> Iterator[tuple[Part, pa.Table]]:
    """Each of these parts with matching rows: their `_part_offset`, and the assigned values under
    the columns' names. Parts are asked together up to ROWS_AT_ONCE, which bounds what is held; all
    at once where the condition or a value reads the table in a subquery too."""
    values = tuple(
        nodes.Alias(_exactly(value, _column(table, name).type), f"\0{name}")
        for name, value in assignments
    )
    query = nodes.Select(
        columns=(nodes.Identifier(("_part",)), nodes.Identifier(("_part_offset",)), *values),
        source=nodes.TableReference(nodes.TableName(table.name, table.database)),
        where=where,
    )
    scope = BindScope(
        snapshot=around.snapshot,
        database=around.environment.database,
        settings=around.settings,  # type: ignore[arg-type]
        environment=around.environment,
        parameters=parameters or (),
    )
    for _, value in assignments:
        bind_expression(value, table, scope)  # an aggregate is told as what it is
    plan = optimize(bind_query(query, scope))
    reads = sum(1 for scan in all_scans(plan.root) if scan.table.id == table.id)
    names = ["_part", "_part_offset", *(name for name, _ in assignments)]
    for some in _together(parts) if reads == 1 else [parts]:
        context = ExecutionContext(
            snapshot=around.snapshot,
            store=around.store,
            settings=around.settings,
            environment=around.environment,
            cancelled=around.cancelled,
            parts={table.id: some} if reads == 1 else {},
        )
        found = run(plan, context).read_all().rename_columns(names)
        found = _stored(found, table, dict(zip(names, plan.types, strict=True)), around)
        matched = set(pc.unique(found.column("_part")).to_pylist())
        for part in some:
            if part.name in matched:
                own = found.filter(pc.equal(found.column("_part"), part.name))
                yield part, own.combine_chunks()


def _exactly(value: nodes.Expression, target: DataType) -> nodes.Expression:
    """A number for a Decimal is read from its text, as in VALUES."""
    if isinstance(plain(target), Decimal) and isinstance(value, nodes.Literal):
        return nodes.Literal(value.text) if isinstance(value.value, float) and value.text else value
    return value


def _stored(
    found: pa.Table, table: Table, types: Mapping[str, DataType], around: TriggerContext
) -> pa.Table:
    """The assigned values as their columns hold them; a DataError names the column of one that
    would be changed."""
    for at, name in enumerate(found.column_names):
        column = table.column(name)
        if column is None:  # _part, _part_offset
            continue
        values = single_chunk(found.column(at))
        try:
            made = store_column(values, types[name], column.type, around.environment)
        except DataError as error:
            place = f"Column {name} of {table.database}.{table.name}"
            raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
        found = found.set_column(at, name, made)
    return found


def in_partition(
    where: nodes.Expression | None, partition_id: str | None
) -> nodes.Expression | None:
    if partition_id is None:
        return where
    same = nodes.Function(
        "equals", (nodes.Identifier(("_partition_id",)), nodes.Literal(partition_id))
    )
    return same if where is None else nodes.Function("and", (same, where))


def _together(parts: Sequence[Part]) -> Iterator[list[Part]]:
    held: list[Part] = []
    for part in parts:
        if held and sum(one.rows for one in held) + part.rows > ROWS_AT_ONCE:
            yield held
            held = []
        held.append(part)
    if held:
        yield held


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None
    return column
