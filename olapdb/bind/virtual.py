"""Virtual columns: the columns that every table offers besides its own."""

from __future__ import annotations

import pyarrow as pa

from olapdb.bind.contracts import QueryBinder
from olapdb.bind.partition_value import has_partition_value, partition_value_column
from olapdb.bind.relation import Qualifier, Relation, RelationColumn
from olapdb.model.schema import Table
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Expression, NameConstant
from olapdb.records import dataclass
from olapdb.types import STRING, UINT64, DataType, LowCardinality

_NAME = LowCardinality(STRING)


@dataclass(frozen=True, slots=True)
class VirtualColumn:
    """A virtual column; DESCRIBE shows `comment`."""

    name: str
    type: DataType
    comment: str


PART_COLUMNS: tuple[VirtualColumn, ...] = (
    VirtualColumn("_part", _NAME, "Name of part"),
    VirtualColumn("_partition_id", _NAME, "Name of partition"),
    VirtualColumn("_block_number", UINT64, "First block of the part"),
    VirtualColumn("_part_offset", UINT64, "Number of row in the part"),
)
"""Virtual columns that a scan makes."""
NAME_COLUMNS: tuple[VirtualColumn, ...] = (
    VirtualColumn("_database", _NAME, "The name of the database"),
    VirtualColumn("_table", _NAME, "The name of the table"),
)
"""Virtual columns with one value in each table, view or system table."""


def virtual_columns(table: Table) -> tuple[VirtualColumn, ...]:
    """Return the virtual columns of a stored table, without those that its own columns hide."""
    columns = [v for v in (*PART_COLUMNS, *NAME_COLUMNS) if table.column(v.name) is None]
    if has_partition_value(table):
        value = partition_value_column(table)
        comment = "Value (a tuple) of a PARTITION BY expression"
        columns.append(VirtualColumn(value.name, value.type, comment))
    return tuple(columns)


def with_names(
    queries: QueryBinder,
    relation: Relation,
    database: str,
    name: str,
    qualifiers: tuple[Qualifier, ...],
) -> Relation:
    """Return the relation with the columns `_database` and `_table`, which no star shows.

    A column of that name in the relation comes first. `database` and `name` are the values."""
    added: list[tuple[str, Expression]] = []

    def column(virtual: VirtualColumn, value: str) -> RelationColumn:
        """Return a column that `*` does not show and that has the constant `value` in all rows."""

        def make() -> Expression:
            """Add the constant column and return the reference to it."""
            unique = queries.names.unique(virtual.name)
            scalar = pa.scalar(value, virtual.type.arrow)
            constant = NameConstant(virtual.type, scalar, virtual.name)
            added.append((unique, constant))
            return ColumnRef(virtual.type, unique)

        return RelationColumn(virtual.name, virtual.type, make, qualifiers, starred=False)

    def build() -> plan.Node:
        """Return the relation's node, with the name columns that the query reads added."""
        node = relation.build()
        if not added:
            return node
        columns = tuple((field.name, ColumnRef(field.type, field.name)) for field in node.schema)
        return plan.Project(node, (*columns, *added))

    own_names = {c.name for c in relation.columns}
    name_columns = [
        column(virtual, value)
        for virtual, value in zip(NAME_COLUMNS, (database, name), strict=True)
        if virtual.name not in own_names
    ]
    return Relation([*relation.columns, *name_columns], build, relation.label, relation.joins)
