"""Virtual columns: what a table offers beside the columns that it was made with."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from olapdb.bind.partition_value import partition_value_column
from olapdb.bind.query import QueryBinder
from olapdb.bind.relation import Qualifier, Relation, RelationColumn
from olapdb.model.schema import Table
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Expression, NameConstant
from olapdb.types import STRING, UINT64, DataType, LowCardinality

_NAME = LowCardinality(STRING)


@dataclass(frozen=True, slots=True)
class VirtualColumn:
    """`comment` is what DESCRIBE says of it."""

    name: str
    type: DataType
    comment: str


OF_PARTS: tuple[VirtualColumn, ...] = (
    VirtualColumn("_part", _NAME, "Name of part"),
    VirtualColumn("_partition_id", _NAME, "Name of partition"),
    VirtualColumn("_block_number", UINT64, "First block of the part"),
    VirtualColumn("_part_offset", UINT64, "Number of row in the part"),
)
"""Those that a scan makes."""
OF_NAMES: tuple[VirtualColumn, ...] = (
    VirtualColumn("_database", _NAME, "The name of the database"),
    VirtualColumn("_table", _NAME, "The name of the table"),
)
"""Those that are one value wherever a table, a view or a system table is read."""


def virtual_columns(table: Table) -> tuple[VirtualColumn, ...]:
    """All of a stored table, but those that columns of its own hide."""
    found = [v for v in (*OF_PARTS, *OF_NAMES) if table.column(v.name) is None]
    value = partition_value_column(table)
    if value is not None:
        comment = "Value (a tuple) of a PARTITION BY expression"
        found.append(VirtualColumn(value.name, value.type, comment))
    return tuple(found)


def with_names(
    queries: QueryBinder,
    relation: Relation,
    database: str,
    name: str,
    qualifiers: tuple[Qualifier, ...],
) -> Relation:
    """The relation with `_database` and `_table`, where it has no such columns of its own."""
    added: list[tuple[str, Expression]] = []

    def column(virtual: VirtualColumn, value: str) -> RelationColumn:
        def make() -> Expression:
            unique = queries.names.unique(virtual.name)
            scalar = pa.scalar(value, virtual.type.arrow)
            constant = NameConstant(virtual.type, scalar, virtual.name)
            added.append((unique, constant))
            return ColumnRef(virtual.type, unique)

        return RelationColumn(virtual.name, virtual.type, make, qualifiers, starred=False)

    def build() -> plan.Node:
        node = relation.build()
        if not added:
            return node
        kept = tuple((field.name, ColumnRef(field.type, field.name)) for field in node.schema)
        return plan.Project(node, (*kept, *added))

    known = {c.name for c in relation.columns}
    named = [
        column(virtual, value)
        for virtual, value in zip(OF_NAMES, (database, name), strict=True)
        if virtual.name not in known
    ]
    return Relation([*relation.columns, *named], build, relation.label, relation.joins)
