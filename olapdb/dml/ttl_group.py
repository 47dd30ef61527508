"""TTL … GROUP BY: one row takes the place of the expired rows of a group.

    TTL d + INTERVAL 1 MONTH GROUP BY id SET hits = sum(hits), d = max(d)

A pass groups the rows of each part by itself, since views know which blocks a part's rows came
from; the rows of a group that lie in several parts become one after a merge has joined the parts. A
column that SET does not name keeps the value of a row of the group, as in ClickHouse. A group of
one row stays as it is, so that a pass over rows that are grouped already changes nothing.

Views lose the rows and get the new ones: what they computed is frozen, unless the table sets
`ttl_retain = 0` (rule 4).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.commit.staging import Staging
from olapdb.compute.batches import single_chunk
from olapdb.dml.delete import NOTHING_DELETED, DeleteResult
from olapdb.dml.find_rows import converted_values, query_plan, run_on_parts
from olapdb.engine.expiry import Expiry, expiry_condition
from olapdb.errors import InvalidPartitionValue
from olapdb.functions.kernels import columns
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.nested_columns import check_nested_sizes
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.row_removal import RowChange, RowRemoval
from olapdb.model.changes import AddPart, RemoveParts
from olapdb.model.part import Part
from olapdb.model.requirements import PartsLive
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.types.arrow_values import from_numpy

_OFFSETS = "\0offsets"


def group_expired_rows(
    change: RowChange,
    snapshot: Snapshot,
    table: Table,
    rule: nodes.TtlItem,
    partition_id: str | None,
    staging: Staging,
) -> DeleteResult:
    """Commit a new row for each group of expired rows of a part. The result counts the rows that
    the new ones replace; `commit` is None where no part has a group of several rows."""
    context = change.context(snapshot)
    expiry = Expiry.of(rule.expression, table, change.origin.services)
    parts = [
        part
        for part in snapshot.parts(table.id)
        if part.rows > 1
        and partition_id in (None, part.partition_id)
        and expiry.share(part) != "none"
    ]
    plan = query_plan(grouping_query(table, rule, expiry_condition([expiry])), context)
    grouped = [
        (part, offsets, rows)
        for part in parts
        for offsets, rows in [_groups(plan, table, part, context)]
        if rows.num_rows
    ]
    if not grouped:
        return NOTHING_DELETED
    removal = RowRemoval(change, snapshot, table, [part for part, _, _ in grouped])
    staged: list[AddPart] = []
    replaced = 0
    for part, offsets, new in grouped:
        change.origin.refuse_cancelled()
        rows = read_rows(context, table, part)
        stays = np.ones(part.rows, dtype=bool)
        stays[offsets] = False
        removal.add_changed(part, rows.take(from_numpy(offsets)), new)
        layout = layout_of(table, context)
        after = layout.sort(pa.concat_tables([rows.filter(from_numpy(stays)), new]))
        derived = layout.derived(after)
        staged.append(staging.stage_replacement(table, part, after, derived))
        replaced += len(offsets)
        failpoint("delete.part_rewritten")
    ids = tuple(sorted(part.id for part, _, _ in grouped))
    commit = removal.publish(
        staging, [PartsLive(table.id, ids)], [RemoveParts(table.id, ids), *staged]
    )
    return DeleteResult(replaced, len(ids), commit)


def grouping_query(
    table: Table, rule: nodes.TtlItem, where: nodes.Expression | None
) -> nodes.Select:
    """Return the query of the groups of several rows for which `where` holds (None: always): the
    offsets of the rows, then the columns of the row that takes their place."""
    values = dict(rule.assignments)
    row = [
        nodes.Alias(
            values.get(column.name)
            or nodes.Function("any_respect_nulls", (nodes.Identifier((column.name,)),)),
            f"\0{column.name}",
        )
        for column in table.stored_columns
    ]
    offsets = nodes.Function("groupArray", (nodes.Identifier(("_part_offset",)),))
    return nodes.Select(
        columns=(nodes.Alias(offsets, _OFFSETS), *row),
        source=nodes.TableReference(nodes.TableName(table.name, table.database)),
        where=where,
        group_by=grouping_keys(rule),
        having=nodes.Function("greater", (nodes.Function("count", ()), nodes.Literal(1, "1"))),
    )


def grouping_keys(rule: nodes.TtlItem) -> tuple[nodes.Expression, ...]:
    """Return the expressions of GROUP BY; a tuple counts as its elements."""
    if len(rule.group_by) == 1 and isinstance(rule.group_by[0], nodes.TupleLiteral):
        return rule.group_by[0].elements
    return rule.group_by


def _groups(
    plan: Plan, table: Table, part: Part, context: TriggerContext
) -> tuple[np.ndarray, pa.Table]:
    """Return the offsets of the part's rows that are grouped, and the rows that take their place.

    Raises InvalidPartitionValue for a new row that belongs to another partition.
    """
    names = [_OFFSETS, *(column.name for column in table.stored_columns)]
    types = dict(zip(names, plan.types, strict=True))
    groups = run_on_parts(plan, table, [part], context).read_all().rename_columns(names)
    _, offsets = columns.elements_of(single_chunk(groups.column(0)))
    new = converted_values(groups.drop_columns([_OFFSETS]), table, types, context)
    stored = {name: single_chunk(new.column(name)) for name in new.column_names}
    check_nested_sizes(table, stored, 0)
    for partition, _, rows in layout_of(table, context).split(new):
        if partition != part.partition_id and rows.num_rows:
            raise InvalidPartitionValue(
                f"TTL … GROUP BY of {table.database}.{table.name} makes a row of partition"
                f" {partition} from rows of partition {part.partition_id}.",
                hint="SET a column of the partition key to its min, max or any.",
            )
    return columns.numpy_values(offsets).astype(np.int64), new
