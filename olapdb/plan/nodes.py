"""Typed plan nodes, free of SQL syntax and independent of a snapshot's parts.

Every node has a schema: an ordered tuple of fields with unique names.  The binder makes the names.
The user's column names, which may repeat, are in `Plan.output` only.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Literal

import pyarrow as pa

from olapdb.model.schema import Table
from olapdb.observation import RowCosts
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression, WindowCall, element_type
from olapdb.plan.number_ranges import ALL, Ranges
from olapdb.records import dataclass
from olapdb.types import UINT64, Array, DataType, Map, Tuple, Variant, make_nullable, plain


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a node's schema."""

    name: str
    type: DataType


Schema = tuple[Field, ...]


@dataclass(frozen=True)
class Node:
    """The base of all plan nodes."""

    @property
    def schema(self) -> Schema:
        """The fields of the node's rows."""
        raise NotImplementedError

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the node's batches."""
        return pa.schema([pa.field(f.name, f.type.arrow) for f in self.schema])

    def children(self) -> tuple[Node, ...]:
        """Return the nodes whose rows this node reads."""
        return ()


@dataclass(frozen=True)
class UnaryNode(Node):
    """The base of the nodes that read the rows of one other, `child`, and by default have its columns."""

    child: Node

    @property
    def schema(self) -> Schema:
        """The child's fields."""
        return self.child.schema

    def children(self) -> tuple[Node, ...]:
        """Return the only input."""
        return (self.child,)


@dataclass(frozen=True)
class Scan(Node):
    """A scan of a stored table.

    `columns` are pairs (unique name, column name in the table); virtual columns (`_part`,
    `_partition_id`, `_block_number`) are read like others.  `predicate`, over the unique names, was
    pushed down and is applied exactly, as is `prewhere`; both may also read names of
    `predicate_columns`, triples (unique name, column name, type) that are not returned.
    With `final`, rows of equal sorting key are combined after `prewhere` and before `predicate`.
    Where the execution context holds a block for `table.id`, the scan reads the block instead of
    the table (a view's trigger).
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
        """Return the read columns under their unique names in the plan."""
        return tuple(Field(u, t) for (u, _), t in zip(self.columns, self.types, strict=True))


@dataclass(frozen=True)
class SystemScan(Node):
    """A scan of `system.<name>` (or information_schema) through the context's provider.

    `columns` are pairs (unique name, column name). `only` are pairs (column name, values): rows with
    another value in such a column need not be listed, since a Filter above drops them."""

    name: str
    columns: tuple[tuple[str, str], ...]
    types: tuple[DataType, ...]
    only: tuple[tuple[str, frozenset[str]], ...] = ()

    @cached_property
    def schema(self) -> Schema:
        """Return the read columns under their unique names in the plan."""
        return tuple(Field(u, t) for (u, _), t in zip(self.columns, self.types, strict=True))


@dataclass(frozen=True)
class Values(Node):
    """Constant rows. A SELECT without FROM has one row without columns."""

    fields: Schema
    rows: pa.Table = field(compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """Return the fields of the constant rows."""
        return self.fields


@dataclass(frozen=True)
class FileScan(Node):
    """Rows of files, or of the text `data`, in a format (the table functions file and format).

    `structure` has all columns of the data in their order; `columns` are pairs (unique name, column
    name), where `_path`, `_file`, `_size` and `_time` say where a row is from unless the data have
    such a column. An empty `compression` is that of the ending of the file's name. The path of a
    text is empty."""

    format: str
    structure: tuple[tuple[str, DataType], ...]
    columns: tuple[tuple[str, str], ...]
    types: tuple[DataType, ...]
    paths: tuple[str, ...] = ()
    compression: str = ""
    data: bytes = field(default=b"", repr=False)

    @cached_property
    def schema(self) -> Schema:
        """Return the read columns under their unique names in the plan."""
        return tuple(Field(u, t) for (u, _), t in zip(self.columns, self.types, strict=True))


@dataclass(frozen=True)
class Numbers(Node):
    """The numbers start, start + step, … in one column; without end where `count` is None."""

    name: str
    type: DataType
    start: int
    count: int | None
    step: int = 1

    @cached_property
    def schema(self) -> Schema:
        """Return the one column of numbers."""
        return (Field(self.name, self.type),)


@dataclass(frozen=True)
class Primes(Node):
    """Prime numbers in one column: those of the numbers start, start + step, … (2 has number 0),
    `count` of them, without end where it is None.

    Only primes within `ranges` are wanted; they count from the first one in there."""

    name: str
    type: DataType
    start: int = 0
    count: int | None = None
    step: int = 1
    ranges: Ranges = ALL

    @cached_property
    def schema(self) -> Schema:
        """Return the one column of primes."""
        return (Field(self.name, self.type),)


@dataclass(frozen=True)
class Loop(UnaryNode):
    """The child's rows again and again, without end unless it has none."""


@dataclass(frozen=True)
class Filter(UnaryNode):
    """The child's rows whose predicate (a number or Bool, NULL is false) is not zero."""

    predicate: Expression


@dataclass(frozen=True)
class Project(UnaryNode):
    """The expressions (unique name, expression over the child), computed for each row.

    `is_wide`: values may be much larger than what they are made of, see `plan.wide_values`."""

    expressions: tuple[tuple[str, Expression], ...]
    is_wide: bool = False

    @cached_property
    def schema(self) -> Schema:
        """Return one column for each expression, in their order."""
        return tuple(Field(n, e.type) for n, e in self.expressions)


@dataclass(frozen=True)
class ArrayJoin(UnaryNode):
    """A row for each element of the `arrays` (unique name of the element, an Array or Map over the
    child), which are joined side by side and must be of equal length in each row.

    A row without elements is dropped; with `left` it stays, once, with default values.  Schema:
    `kept`, fields of the child's, then the elements.
    """

    kept: Schema
    arrays: tuple[tuple[str, Expression], ...]
    left: bool

    @cached_property
    def schema(self) -> Schema:
        """Return the retained columns of the input, then a column of elements for each array."""
        elements = []
        for name, array in self.arrays:
            data_type = element_type(array.type)
            assert data_type is not None, array.type
            elements.append(Field(name, data_type))
        return (*self.kept, *elements)


@dataclass(frozen=True, slots=True)
class Totals:
    """WITH TOTALS of an Aggregate: which of its groups the totals are about.

    `having`, over the Aggregate's schema, chooses them; None is all groups (no HAVING, or the
    setting totals_mode = 'before_having')."""

    having: Expression | None = None


@dataclass(frozen=True)
class Aggregate(UnaryNode):
    """Groups of rows with equal `keys`, and their aggregates; without keys one row, even over no
    input.

    `empty_without_rows`: GROUP BY over constants only, where no input row gives no group.
    `totals`: WITH TOTALS, the row over all groups, which a `TotalsRow` reads afterwards.
    `limited`: max_rows_to_group_by counts the groups; those of a rule are no groups of the query.
    With `sets` (ROLLUP, CUBE, GROUPING SETS) it groups by each set of key names; keys that are not
    in a row's set have their type's default, or NULL with `nullable_keys`.
    Schema: keys, then aggregates, then the number of the row's set where there are sets.
    """

    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    empty_without_rows: bool = False
    sets: tuple[tuple[str, ...], ...] = ()
    set_name: str = ""
    nullable_keys: bool = False
    totals: Totals | None = None
    limited: bool = True

    @cached_property
    def schema(self) -> Schema:
        """Return the keys, the aggregates, then the number of the grouping set, if any."""
        keys = tuple(Field(n, self.key_type(e)) for n, e in self.keys)
        aggregates = tuple(Field(n, a.type) for n, a in self.aggregates)
        return keys + aggregates + ((Field(self.set_name, UINT64),) if self.sets else ())

    def key_type(self, key: Expression) -> DataType:
        """Return the type of a key's column; arrays, tuples and maps are never NULL."""
        nested = isinstance(plain(key.type), Array | Tuple | Map | Variant)
        return make_nullable(key.type) if self.nullable_keys and not nested else key.type


@dataclass(frozen=True)
class TotalsRow(Node):
    """The one row of totals of an Aggregate with `totals`: its keys are NULL or their defaults.

    It is computed while the Aggregate runs; the Aggregate is no child, so as not to run twice."""

    aggregate: Aggregate

    @property
    def schema(self) -> Schema:
        """Return the columns of the Aggregate."""
        return self.aggregate.schema


@dataclass(frozen=True)
class Join(Node):
    """A hash join on pairs of equal-typed keys (NULL matches nothing), then `residual`.

    `kind` INNER, LEFT, RIGHT, FULL, CROSS; strictness ALL, ANY, SEMI, ANTI, ASOF.  Rows without a
    partner get the other side's default values, or NULL where that side's field in `schema` is
    Nullable (join_use_nulls).  Of ASOF the residual is the inequality, a Call over the left side and
    the right side in this order, and chooses the nearest row.  Schema: left's fields, then right's (SEMI, ANTI: left's).
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
        """Return `fields`, which the binder computed: the columns of both sides or the left one."""
        return self.fields

    def children(self) -> tuple[Node, ...]:
        """Return the left and the right input."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key to sort by; NULL and NaN are last, in both directions, unless `nulls_first`."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Paste(Node):
    """PASTE JOIN: the first row of both sides side by side, the second, …, until one side ends."""

    left: Node
    right: Node

    @cached_property
    def schema(self) -> Schema:
        """Return the columns of the left side, then those of the right side."""
        return (*self.left.schema, *self.right.schema)

    def children(self) -> tuple[Node, ...]:
        """Return the left and the right input."""
        return (self.left, self.right)


@dataclass(frozen=True)
class Sort(UnaryNode):
    """The child's rows in the order of the keys, stable; with `limit` only so many of them."""

    keys: tuple[SortKey, ...]
    limit: int | None = None


@dataclass(frozen=True)
class Fill(UnaryNode):
    """ORDER BY … WITH FILL: the child's rows, sorted by `prefix` and `key`, with rows for missing
    values of the key.

    Numbers are in the units in which the column is stored. The values of each prefix are `start`
    (else the first row's), then each `step`, or each `months` where these are not 0, up to before
    `stop` (else the last row's), and with `staleness` only less than it behind a row. A filled row
    has the prefix of its group, computes `interpolated` from the row before it, and has defaults.
    """

    key: ColumnRef
    descending: bool
    nulls_first: bool
    prefix: tuple[ColumnRef, ...]
    start: int | float | None
    stop: int | float | None
    step: int | float
    months: int
    staleness: int | float | None
    ticks_per_day: int
    interpolated: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True)
class Window(UnaryNode):
    """Window functions that share PARTITION BY and ORDER BY; their frames may differ.

    Its rows are the child's, sorted by partition and order.  Schema: the child's fields, then the
    calls.
    """

    partition_by: tuple[Expression, ...]
    order_by: tuple[SortKey, ...]
    calls: tuple[tuple[str, WindowCall], ...]
    ranks_max: tuple[tuple[str, int], ...] = ()
    """The greatest result of a ranking call that the Filter above keeps, by the call's name. Rows whose result is greater
    may be left out."""

    @cached_property
    def schema(self) -> Schema:
        """Return the input's columns, then one for each window function."""
        return (*self.child.schema, *(Field(name, call.type) for name, call in self.calls))


@dataclass(frozen=True)
class Limit(UnaryNode):
    """The rows offset … offset + count; `count` None is no limit.

    `ties` (WITH TIES) are the keys of the sort below: further rows equal to the last are kept."""

    count: int | None
    offset: int = 0
    ties: tuple[SortKey, ...] = ()


@dataclass(frozen=True)
class RelativeLimit(UnaryNode):
    """LIMIT and OFFSET that depend on how many rows there are; no count is no limit.

    A negative number counts rows from the end: OFFSET drops the last, LIMIT keeps the last of the
    others. A float between 0 and 1 is that share of all rows, rounded up. `ties` are the keys of the
    sort below: rows beside the kept ones, which OFFSET did not drop, are kept where they are equal."""

    count: int | float | None
    offset: int | float = 0
    ties: tuple[SortKey, ...] = ()


@dataclass(frozen=True)
class LimitBy(UnaryNode):
    """The rows offset … offset + count of each distinct value of `keys`.

    Negative numbers count from the end, as those of a RelativeLimit."""

    count: int
    offset: int
    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class Distinct(UnaryNode):
    """The first row of each distinct value of `keys`, or of all columns where there are none."""

    keys: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Union(Node):
    """UNION ALL: the children's columns have the types of `fields` by position, and get their names."""

    inputs: tuple[Node, ...]
    fields: Schema

    @property
    def schema(self) -> Schema:
        """Return `fields`, which name the inputs' columns by position."""
        return self.fields

    def children(self) -> tuple[Node, ...]:
        """Return the inputs in their order."""
        return self.inputs


@dataclass(frozen=True)
class RecursiveUnion(Node):
    """WITH RECURSIVE: the rows of `first`, then those of `repeated` over the rows of the step before,
    which its `WorkingTable`s of the same `key` read, until a step has none.

    Beyond `depth_max` steps it is an error. Columns are by position, and have the types of `fields`."""

    first: Node
    repeated: Node
    key: str
    depth_max: int
    fields: Schema

    @property
    def schema(self) -> Schema:
        """Return `fields`, which name the inputs' columns by position."""
        return self.fields

    def children(self) -> tuple[Node, ...]:
        """Return the first step and the repeated one."""
        return (self.first, self.repeated)


@dataclass(frozen=True)
class WorkingTable(Node):
    """The rows of the last step of the `RecursiveUnion` of the same key, by position."""

    key: str
    fields: Schema

    @property
    def schema(self) -> Schema:
        """Return the columns of a step."""
        return self.fields


@dataclass(frozen=True)
class Shared(UnaryNode):
    """The rows of a subplan that occurs several times in the query; it runs once.

    All occurrences have the same `number` and the same child; `fields` names its columns by position
    as they are called here."""

    number: int
    fields: Schema

    @property
    def schema(self) -> Schema:
        """Return `fields`, which name the child's columns by position."""
        return self.fields


@dataclass(frozen=True)
class SetDifference(Node):
    """EXCEPT and INTERSECT; `distinct` drops duplicates, else multiplicities of the left side count
    as in ClickHouse."""

    left: Node
    right: Node
    operator: Literal["EXCEPT", "INTERSECT"]
    distinct: bool
    fields: Schema

    @property
    def schema(self) -> Schema:
        """Return `fields`, which name the inputs' columns by position."""
        return self.fields

    def children(self) -> tuple[Node, ...]:
        """Return the left and the right input."""
        return (self.left, self.right)


@dataclass(frozen=True)
class Plan:
    """A bound query. `output` pairs a field of the root's schema with the user's column name.

    `tables` are the ids and revisions of the tables, views and materialized views that it depends
    on: the plan is valid while they are unchanged.
    """

    root: Node
    output: tuple[tuple[str, str], ...]
    tables: tuple[tuple[str, int], ...] = ()
    correlated: bool = False
    """True if the query had correlated subqueries, which the plan has as joins."""
    momentary: str = ""
    """What the plan reads by the state of this snapshot (SAMPLE 10000), so that it is not kept."""
    keeps_nulls: bool = False
    """True if a CAST has a Nullable result by the setting `cast_keep_nullable`."""
    reads_blocks: bool = False
    """True if results depend on how rows are cut into batches, so that no batch is cut by its bytes."""
    joined_tables: tuple[Table, ...] = ()
    """The tables whose sizes decide the order of inner joins; () where there is no order to choose."""
    row_costs: RowCosts = field(default_factory=RowCosts, compare=False, repr=False)
    """What the rows of its scans took when the plan ran before."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The user's column names, which may repeat."""
        return tuple(display for _, display in self.output)

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        """The types of the output's columns."""
        by_name = {f.name: f.type for f in self.root.schema}
        return tuple(by_name[name] for name, _ in self.output)
