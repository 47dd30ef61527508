"""The layout of a table's rows: sorted by its sorting key, split by its partition key."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import olapdb.functions.datetime.components  # noqa: F401  (most partition keys are months or days)
from olapdb.bind import NO_SNAPSHOT, BindScope, bind_expression
from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.compute.ordering import OrderColumn, is_sorted, sort_indices
from olapdb.config import tuning
from olapdb.engine.monotonic_keys import constant_value, key_values
from olapdb.engine.projections import BoundProjection, bind_projection
from olapdb.engine.text_preprocessing import preprocessed_values
from olapdb.errors import CannotConvertType, IncorrectData
from olapdb.functions.base import Environment
from olapdb.model.schema import VECTOR_SIMILARITY, SkipIndex, Table
from olapdb.native.memory import lasting_pool
from olapdb.plan.expressions import Call, ColumnRef, Expression, columns_of
from olapdb.runtime.cache import Cache
from olapdb.sql.parser import parse_expression
from olapdb.storage.cache import PartCache
from olapdb.storage.part_plan import NOTHING_DERIVED, Derived
from olapdb.storage.skip_indexes import indexed_type
from olapdb.threads import in_threads
from olapdb.types import (
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Integer,
    String,
    Time,
    Time64,
    Tuple,
    plain,
)
from olapdb.types.arrow_values import from_numpy

UNPARTITIONED = "all"


class TableLayout:
    """The keys of one version of a table, bound once. Immutable; threads may share it."""

    def __init__(self, table: Table, environment: Environment | None = None) -> None:
        self.table = table
        self._environment = (environment or Environment()).of_warehouse

    # --- keys

    @cached_property
    def sorting_expressions(self) -> tuple[Expression, ...]:
        """Return the sorting key's items over the table's columns."""
        return tuple(self._bind(item.expression) for item in self.table.sorting_key)

    @cached_property
    def partition_expressions(self) -> tuple[Expression, ...]:
        """Return the items of the partition key; a tuple's elements one by one."""
        text = self.table.partition_key.strip()
        if not text or text.replace(" ", "").lower() == "tuple()":
            return ()
        bound = self._bind(text)
        if isinstance(bound, Call) and bound.name == "tuple":
            return bound.arguments
        return (bound,)

    @cached_property
    def index_expressions(self) -> tuple[tuple[SkipIndex, Expression], ...]:
        """Return the skip indexes that parts hold, with their expressions over the table's columns."""
        return tuple(
            (index, self._bind(index.expression))
            for index in self.table.indexes
            if index.type != VECTOR_SIMILARITY
        )

    @cached_property
    def vector_expressions(self) -> tuple[tuple[SkipIndex, Expression], ...]:
        """Return the indexes over vectors with their expressions over the table's columns."""
        return tuple(
            (index, self._bind(index.expression))
            for index in self.table.indexes
            if index.type == VECTOR_SIMILARITY
        )

    def check_vectors(self, rows: pa.Table) -> None:
        """Raise IncorrectData for a vector that is not as long as an index over it says."""
        for index, expression in self.vector_expressions:
            batch = _batch(rows, columns_of(expression))
            lengths = pc.list_value_length(evaluate_array(expression, batch, self._environment))
            expected = index.parameters[0]
            is_wrong = pc.not_equal(lengths, expected)
            if is_wrong.true_count:
                length = lengths[int(pc.index(is_wrong, True).as_py())]
                raise IncorrectData(
                    f"A vector of the index {index.name} of {self.table.database}.{self.table.name}"
                    f" has {length} elements, {expected} expected.",
                    hint="Insert vectors of that length, or drop the index.",
                )

    @cached_property
    def projections(self) -> tuple[BoundProjection, ...]:
        """Return the projections over the table's columns."""
        return tuple(bind_projection(p, self.table) for p in self.table.projections)

    def derived(self, rows: pa.Table) -> Derived:
        """Return what a part holds besides its rows, which are in its order: values of its skip indexes, and rows of its
        projections."""
        if not rows.num_rows or not (self.table.indexes or self.table.projections):
            return NOTHING_DERIVED
        projected = {
            bound.definition.name: bound.rows_of(rows, self._environment)
            for bound in self.projections
        }
        return Derived(self._all_index_values(rows), projected)

    def _all_index_values(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Return the values of each skip index's expression, by its name; in the rows' order."""
        if not self.index_expressions:
            return {}
        used_columns = frozenset().union(
            *(columns_of(index_expression) for _, index_expression in self.index_expressions)
        )
        batch = _batch(rows, used_columns)
        return {
            index.name: self._index_values(index, expression, batch)
            for index, expression in self.index_expressions
        }

    def _index_values(
        self, index: SkipIndex, expression: Expression, batch: pa.RecordBatch
    ) -> pa.Array:
        """Return the values of one index's expression for the rows of the batch, as the index's
        preprocessor, if any, makes them."""
        values = evaluate_array(expression, batch, self._environment)
        values = preprocessed_values(index, values, expression.type)
        # Without the cast, list types may differ in the names of their items.
        return values.cast(indexed_type(index, expression.type.arrow))

    @cached_property
    def key_columns(self) -> frozenset[str]:
        """Return the columns that are themselves items of the sorting key."""
        return frozenset(
            expression.name
            for expression in self.sorting_expressions
            if isinstance(expression, ColumnRef)
        )

    @cached_property
    def sorting_columns(self) -> frozenset[str]:
        """Return all columns that the sorting key reads."""
        return frozenset().union(
            *(columns_of(expression) for expression in self.sorting_expressions)
        )

    @cached_property
    def partition_columns(self) -> frozenset[str]:
        """Return all columns that the partition key reads."""
        return frozenset().union(
            *(columns_of(expression) for expression in self.partition_expressions)
        )

    @cached_property
    def keys_within_partitions(self) -> bool:
        """Return whether rows of equal sorting key are certainly in one partition.

        They are if every column of the partition key is an item of the sorting key, of a type whose
        equal values are identical. Then the rows of all partitions may be combined together. False
        may also mean that it is not known."""
        exact_columns = {
            expression.name
            for expression in self.sorting_expressions
            if isinstance(expression, ColumnRef) and isinstance(plain(expression.type), _EXACT)
        }
        return self.partition_columns <= exact_columns

    def sorting_keys(self, rows: pa.Table) -> list[pa.Array]:
        """Return the sorting key's values, item by item; `rows` must have the columns it reads."""
        batch = _batch(rows, self.sorting_columns)
        return [
            evaluate_array(expression, batch, self._environment)
            for expression in self.sorting_expressions
        ]

    # --- sort

    def sort(self, rows: pa.Table, threads: int = 1) -> pa.Table:
        """Return the rows in the order of the sorting key, one chunk a column.

        The sort is stable; NULL and NaN come last. The columns of many rows are copied in some threads."""
        order = self.order(rows)
        if order is None:
            return rows.combine_chunks()
        if threads == 1 or rows.num_rows < tuning.PARALLEL_COLUMNS_ROWS_MIN:
            return rows.take(order).combine_chunks()
        columns = in_threads(_taken, [(column, order) for column in rows.columns], threads)
        return pa.Table.from_arrays(columns, schema=rows.schema)

    def order(self, rows: pa.Table) -> pa.Array | None:
        """Return the positions that sort the rows, None if they are already sorted."""
        if not self.table.sorting_key or rows.num_rows <= 1:
            return None
        columns = [
            OrderColumn(values, item.descending)
            for values, item in zip(self.sorting_keys(rows), self.table.sorting_key, strict=True)
        ]
        if is_sorted(columns, rows.num_rows):
            return None
        return sort_indices(columns, rows.num_rows)

    # --- partitions

    def split(self, rows: pa.Table) -> list[tuple[str, tuple[object, ...], pa.Table]]:
        """Return (partition id, partition value, rows) for each partition, by first appearance.

        Rows keep their order."""
        if not rows.num_rows:
            return []
        if not self.partition_expressions:
            return [(UNPARTITIONED, (), rows)]
        only_values = self._only_partition(rows)
        if only_values is not None:
            return [(*self._identify(only_values, 0), rows)]
        values = self._partition_values(rows)
        partitions = factorise(values, rows.num_rows)
        if partitions.count == 1:
            return [(*self._identify(values, 0), rows)]
        changes = np.count_nonzero(partitions.codes[1:] != partitions.codes[:-1])
        if changes == partitions.count - 1:
            return self._slices(rows, values, partitions.first)
        groups = partitions.groups
        order, ends = groups.order, np.cumsum(groups.sizes)
        pieces = []
        for code, first in enumerate(partitions.first):
            identity, value = self._identify(values, int(first))
            positions = order[groups.starts[code] : ends[code]]
            pieces.append((identity, value, rows.take(from_numpy(positions))))
        return pieces

    def _slices(
        self, rows: pa.Table, values: Sequence[pa.Array], first: np.ndarray
    ) -> list[tuple[str, tuple[object, ...], pa.Table]]:
        """Return (partition id, value, rows) of rows that are ordered by partition, without a copy.

        `first` has the first row of each partition.
        """
        ends = [*first[1:], rows.num_rows]
        return [
            (*self._identify(values, int(start)), rows.slice(start, end - start))
            for start, end in zip(first, ends, strict=True)
        ]

    def partition_ids(self, rows: pa.Table) -> list[str]:
        """Return the ids of the rows' partitions, by first appearance."""
        return list(self.partitions(rows))

    def partitions(self, rows: pa.Table) -> dict[str, tuple[object, ...]]:
        """Return the values of the rows' partitions by their ids, by first appearance."""
        if not rows.num_rows:
            return {}
        if not self.partition_expressions:
            return {UNPARTITIONED: ()}
        only_values = self._only_partition(rows)
        if only_values is not None:
            return dict([self._identify(only_values, 0)])
        values = self._partition_values(rows)
        first = factorise(values, rows.num_rows).first
        return dict(self._identify(values, int(row)) for row in first)

    def partition_id(self, value: Sequence[object]) -> str:
        """Return the id of the partition with this value, in the form that `split` returns."""
        if not self.partition_expressions:
            return UNPARTITIONED
        arrays = [
            pa.array([element], type=expression.type.arrow)
            for element, expression in zip(value, self.partition_expressions, strict=True)
        ]
        return self._identify(arrays, 0)[0]

    def _only_partition(self, rows: pa.Table) -> list[pa.Array] | None:
        """Return the partition key's values, length 1 each, if all rows surely share them.

        Returns None if this is not known.
        """
        batch = _batch(rows, self.partition_columns)
        values = []
        for expression in self.partition_expressions:
            value = constant_value(expression, batch, self._environment)
            if value is None:
                return None
            values.append(value)
        return values

    def _partition_values(self, rows: pa.Table) -> list[pa.Array]:
        """Return the partition key's values, item by item, in the rows' order."""
        batch = _batch(rows, self.partition_columns)
        return [
            key_values(expression, batch, self._environment)
            for expression in self.partition_expressions
        ]

    def _identify(self, values: Sequence[pa.Array], row: int) -> tuple[str, tuple[object, ...]]:
        """Return the id and the value of a row's partition; dates are days, timestamps ticks."""
        types = [expression.type for expression in self.partition_expressions]
        plain_values = tuple(json_value(column[row]) for column in values)
        return partition_id(plain_values, types), plain_values

    # --- binding

    def _bind(self, text: str) -> Expression:
        """Return the bound expression of an item of a key; a plain column needs no binder."""
        column = self.table.column(text.strip("`"))
        if column is not None and column.default_kind != "ALIAS":
            return ColumnRef(column.type, column.name)
        scope = BindScope(
            snapshot=NO_SNAPSHOT, database=self.table.database, environment=self._environment
        )
        return bind_expression(parse_expression(text), self.table, scope)


def shared_layout(table: Table, cache: Cache, zone: str) -> TableLayout:
    """Return the table's layout from the cache; its keys are bound once for each version."""
    key = ("layout", table.id, table.version, table.indexes, table.projections, zone)
    return cache.get_or_make(key, lambda: TableLayout(table, Environment(zone=zone)))


def layout_of_query(table: Table, cache: PartCache, environment: Environment) -> TableLayout:
    """Return the layout of a table that a query reads, from the cache of its store; its keys are bound
    once for each version."""
    zone = environment.of_warehouse.zone
    key = ("keys", table.id, table.version, table.indexes, table.projections, zone)
    layout = cache.layouts.get(key)
    if not isinstance(layout, TableLayout):
        layout = TableLayout(table, Environment(zone=zone))
        cache.layouts.put(key, layout)
    return layout


def _taken(column: pa.ChunkedArray, order: pa.Array) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column at positions, as one chunk where they fit one."""
    pool = lasting_pool()
    return pc.take(column, order, memory_pool=pool).combine_chunks(memory_pool=pool)


_EXACT = (Integer, String, Date, Date32, DateTime, DateTime64, Time, Time64)
"""Types whose equal values are identical, unlike 0.0 and -0.0."""


def partition_id(values: Sequence[object], types: Sequence[DataType]) -> str:
    """Return the name of a partition in file names and system tables, as in ClickHouse.

    Integers are verbatim, dates are yyyymmdd, joined by `-`. A value of any other type makes it the hex
    of a 128-bit hash (BLAKE2b over the values' text; ClickHouse uses SipHash). `values` are JSON
    values: dates are days since 1970-01-01.
    """
    words = []
    for value, data_type in zip(values, types, strict=True):
        kind = plain(data_type)
        if value is None or isinstance(kind, Tuple):
            break
        if isinstance(kind, Date | Date32):
            words.append(str(np.datetime64(int(str(value)), "D")).replace("-", ""))
        elif isinstance(kind, Integer):
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(str(int(value)))
        elif isinstance(value, int):  # timestamps
            words.append(str(value))
        else:
            break
    else:
        return "-".join(words)
    texts = [f"{data_type}={value!r}" for value, data_type in zip(values, types, strict=True)]
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=16).hexdigest()


def json_value(value: pa.Scalar) -> object:
    """Return a partition value as the catalog stores it: dates are days, timestamps ticks.

    Raises CannotConvertType for text that is not UTF-8."""
    if not value.is_valid:
        return None
    if pa.types.is_date(value.type) or pa.types.is_timestamp(value.type):
        return value.value
    try:
        python_value = value.as_py()
    except UnicodeDecodeError as error:
        raise CannotConvertType(
            f"A value of the partition key is not UTF-8: {error}.",
            hint="Partition by hex(…) of it.",
        ) from error
    if isinstance(python_value, bool | int | float | str):
        return python_value
    return python_value.hex() if isinstance(python_value, bytes) else str(python_value)


def _batch(rows: pa.Table, names: frozenset[str]) -> pa.RecordBatch:
    """Return the named columns as one batch with the right number of rows, even without a column."""
    present = [name for name in rows.column_names if name in names]
    if not present:
        return pa.RecordBatch.from_arrays([pa.nulls(rows.num_rows)], names=["-"])
    return pa.RecordBatch.from_arrays(
        [single_chunk(rows.column(name)) for name in present], names=present
    )
