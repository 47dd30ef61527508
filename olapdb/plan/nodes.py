"""Typed plan nodes: no SQL syntax left, nothing that depends on a snapshot's parts.

Every node has a schema: an ordered tuple of fields whose names are unique within it.  The binder
makes the names; the user's column names, which may repeat, are in `Plan.output` only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import pyarrow as pa

from olapdb.model.schema import Table
from olapdb.plan.expressions import AggregateCall, Expression, WindowCall, element_type
from olapdb.types import UINT64, Array, DataType, Map, Tuple, make_nullable, plain


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: DataType


Schema = tuple[Field, ...]


@dataclass(frozen=True)
class Node:
    """Base of all plan nodes."""

    @property
    def schema(self) -> Schema:
        raise NotImplementedError

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the node's batches."""
        return pa.schema([pa.field(f.name, f.type.arrow) for f in self.schema])

    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class Scan(Node):
    """Reads a stored table. `columns` are (unique name, column name in the table) pairs; virtual
    columns (`_part`, `_partition_id`, `_block_number`) are read like others.

    `predicate` (over the unique names) has been pushed down and is applied exactly; the columns
    that only it needs need not be in `columns`, so it (and `prewhere`) may refer to names in
    `predicate_columns`.
    With `final`, rows of equal sorting key are combined before the predicate, unless
    `prewhere` says that it may be applied before.  Where the execution context holds a block for
    `table.id`, the block is read in the table's stead (a view's trigger).
    """

    table: Table
    columns: tuple[tuple[str, str], ...]
    types: tuple[DataType, ...]
    predicate: Expression | None = None
    predicate_columns: tuple[tuple[str, str, DataType], ...] = ()
    final: bool = False
    prewhere: Expression | None = None

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(u, t) for (u, _), t in zip(self.columns, self.types, strict=True))


@dataclass(frozen=True)
class SystemScan(Node):
    """Reads `system.<name>` (or information_schema) through the context's provider.

    `columns` are (unique name, column name) pairs, `arguments` those of a table function."""

    name: str
    columns: tuple[tuple[str, str], ...]
    types: tuple[DataType, ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(u, t) for (u, _), t in zip(self.columns, self.types, strict=True))


@dataclass(frozen=True)
class Values(Node):
    """Constant rows; `rows.num_rows` 1 without columns for a SELECT without FROM."""

    fields: Schema
    rows: pa.Table = field(compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True)
class Numbers(Node):
    """`numbers(start, count)`, `system.numbers` (count None): one UInt64 column."""

    name: str
    type: DataType
    start: int
    count: int | None
    step: int = 1

    @cached_property
    def schema(self) -> Schema:
        return (Field(self.name, self.type),)


@dataclass(frozen=True)
class Filter(Node):
    """Keeps rows whose predicate (any number type or Bool, NULL is false) is not zero."""

    child: Node
    predicate: Expression

    @property
    def schema(self) -> Schema:
        return self.child.schema

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Project(Node):
    child: Node
    expressions: tuple[tuple[str, Expression], ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(n, e.type) for n, e in self.expressions)

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class ArrayJoin(Node):
    """A row for each element of the `arrays` (unique name of the element, an Array or Map over the
    child), which are joined side by side and must be of equal length in each row.

    A row without elements is dropped; with `left` it stays, once, with default values.  Schema:
    `kept`, fields of the child's, then the elements.
    """

    child: Node
    kept: Schema
    arrays: tuple[tuple[str, Expression], ...]
    left: bool

    @cached_property
    def schema(self) -> Schema:
        elements = []
        for name, array in self.arrays:
            data_type = element_type(array.type)
            assert data_type is not None, array.type
            elements.append(Field(name, data_type))
        return (*self.kept, *elements)

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Aggregate(Node):
    """Groups by `keys`, with aggregates; no keys: one row even over no input.

    `empty_without_rows`: GROUP BY over constants only, where no input row gives no group.
    With `sets` (ROLLUP, CUBE, GROUPING SETS) it groups by each set of key names; keys that are not
    in a row's set have their type's default, or NULL with `nullable_keys`.
    Schema: keys, then aggregates, then the number of the row's set where there are sets.
    """

    child: Node
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    empty_without_rows: bool = False
    sets: tuple[tuple[str, ...], ...] = ()
    set_name: str = ""
    nullable_keys: bool = False

    @cached_property
    def schema(self) -> Schema:
        keys = tuple(Field(n, self.key_type(e)) for n, e in self.keys)
        aggregates = tuple(Field(n, a.type) for n, a in self.aggregates)
        return keys + aggregates + ((Field(self.set_name, UINT64),) if self.sets else ())

    def key_type(self, key: Expression) -> DataType:
        """The type of a key's column: arrays, tuples and maps are never NULL."""
        nested = isinstance(plain(key.type), Array | Tuple | Map)
        return make_nullable(key.type) if self.nullable_keys and not nested else key.type

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Join(Node):
    """Hash join on pairs of equal-typed keys (NULL matches nothing), then `residual`.

    `kind` INNER, LEFT, RIGHT, FULL, CROSS; strictness ALL, ANY, SEMI, ANTI, ASOF.  Rows without a
    partner get the other side's default values, or NULL where that side's field in `schema` is
    Nullable (join_use_nulls).  Schema: left's fields, then right's (SEMI, ANTI: left's).
    """

    left: Node
    right: Node
    kind: Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]
    strictness: Literal["ALL", "ANY", "SEMI", "ANTI", "ASOF"]
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    residual: Expression | None
    fields: Schema

    @property
    def schema(self) -> Schema:
        return self.fields

    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class SortKey:
    """NULL and NaN are last, in both directions, unless `nulls_first`."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Sort(Node):
    """`limit` (offset included) lets it keep the top rows only."""

    child: Node
    keys: tuple[SortKey, ...]
    limit: int | None = None

    @property
    def schema(self) -> Schema:
        return self.child.schema

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Window(Node):
    """Computes window functions that share PARTITION BY and ORDER BY; their frames may differ.

    Its rows are the child's, sorted by partition and order.  Schema: the child's fields, then the
    calls.
    """

    child: Node
    partition_by: tuple[Expression, ...]
    order_by: tuple[SortKey, ...]
    calls: tuple[tuple[str, WindowCall], ...]

    @cached_property
    def schema(self) -> Schema:
        return (*self.child.schema, *(Field(name, call.type) for name, call in self.calls))

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Limit(Node):
    """`ties` (keys of the sort below) for WITH TIES."""

    child: Node
    count: int | None
    offset: int = 0
    ties: tuple[SortKey, ...] = ()

    @property
    def schema(self) -> Schema:
        return self.child.schema

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class LimitBy(Node):
    child: Node
    count: int
    offset: int
    keys: tuple[Expression, ...]

    @property
    def schema(self) -> Schema:
        return self.child.schema

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Distinct(Node):
    """First row of each distinct value of `keys` (all columns where empty)."""

    child: Node
    keys: tuple[Expression, ...] = ()

    @property
    def schema(self) -> Schema:
        return self.child.schema

    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Union(Node):
    """UNION ALL: children have the fields' types by position; names are the fields'."""

    inputs: tuple[Node, ...]
    fields: Schema

    @property
    def schema(self) -> Schema:
        return self.fields

    def children(self) -> tuple[Node, ...]:
        return self.inputs


@dataclass(frozen=True)
class SetDifference(Node):
    """EXCEPT and INTERSECT; `distinct` drops duplicates, else multiplicities of the left side
    are kept as ClickHouse does."""

    left: Node
    right: Node
    operator: Literal["EXCEPT", "INTERSECT"]
    distinct: bool
    fields: Schema

    @property
    def schema(self) -> Schema:
        return self.fields

    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Plan:
    """A bound query. `output` pairs a field of the root's schema with the user's column name.

    `tables` are the ids and revisions of the tables, views and materialized views that the
    plan was made from: the plan is valid while they are unchanged.
    """

    root: Node
    output: tuple[tuple[str, str], ...]
    tables: tuple[tuple[str, int], ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(display for _, display in self.output)

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        by_name = {f.name: f.type for f in self.root.schema}
        return tuple(by_name[name] for name, _ in self.output)
