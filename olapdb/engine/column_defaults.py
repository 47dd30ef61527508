"""Values of missing columns: DEFAULT and MATERIALIZED expressions, else the type's default.

A column is missing where an INSERT leaves it out, or a part was written before it was added.  INSERT,
reads and merges all use this module, so a row reads the same before and after its part is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from olapdb.bind import BindScope, bind_expression
from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import DataError, IncorrectQuery
from olapdb.functions import cast_column, default_value, store_column
from olapdb.functions.base import Environment
from olapdb.functions.kernels.columns import as_array
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression, columns_of
from olapdb.sql.parser import parse_expression
from olapdb.storage.cache import BoundedCache
from olapdb.storage.reader import PartReader
from olapdb.types import Array, DataType

Made = TypeVar("Made")


class Remembers(Protocol):
    """A cache of values that can be computed again."""

    def get_or_make(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the cached value of the key, or `make()`, which is then cached."""


@dataclass(frozen=True)
class DefaultColumn:
    """How one column is computed where it is missing: by `expression`, or None, the type's default.

    The default of an array in a nested structure has as many elements as another array of the
    structure: the first of `sized_like` that is present. These are sorted, the oldest first."""

    name: str
    type: DataType
    stored: bool
    expression: Expression | None
    sized_like: tuple[str, ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        """Return the columns that the expression reads."""
        return frozenset() if self.expression is None else columns_of(self.expression)


@dataclass(frozen=True)
class CheckConstraint:
    """A condition that must be true for every row of an INSERT; NULL is not."""

    name: str
    text: str
    condition: Expression


@dataclass(frozen=True)
class DefaultColumns:
    """The defaults of a table's columns, in the table's order, and its constraints."""

    columns: tuple[DefaultColumn, ...]
    constraints: tuple[CheckConstraint, ...] = ()

    @staticmethod
    def of(
        table: Table, snapshot: Snapshot, environment: Environment, cache: Remembers
    ) -> DefaultColumns:
        """Return the defaults of a table from the cache; they are bound once for each version."""
        key = ("defaults", table.id, table.version, environment.zone)
        return cache.get_or_make(key, lambda: bind_defaults(table, snapshot, environment))

    def complete(
        self,
        given: Mapping[str, pa.Array],
        rows: int,
        environment: Environment,
        names: Collection[str] | None = None,
        *,
        storing: bool = False,
    ) -> dict[str, pa.Array]:
        """Return the given columns and all missing ones, in the columns' Arrow types.

        With `names`, only these columns and those that their defaults read are added. An expression
        may use given columns and other defaults, in any order. Raises IncorrectQuery for a circle of
        defaults, and a DataError that names the column for a failing expression. `storing` (INSERT):
        a value that the column cannot hold raises too; otherwise it is converted as by CAST.
        """
        full = dict(given)
        missing = [c for c in self.columns if c.name not in full]
        if names is not None:
            needed = self.needed_for(names, full.keys())
            missing = [c for c in missing if c.name in needed]
        while missing:
            ready = [c for c in missing if c.needs <= full.keys()]
            if not ready:
                circle = ", ".join(c.name for c in missing)
                raise IncorrectQuery(f"The defaults of these columns need each other: {circle}.")
            for column in ready:
                full[column.name] = _value(column, full, rows, environment, storing)
            missing = [c for c in missing if c.name not in full]
        return full

    def needed_for(self, names: Collection[str], present: Collection[str]) -> set[str]:
        """Return `names` and all columns that the defaults of those not `present` read."""
        by_name = {c.name: c for c in self.columns}
        needed: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            needed.add(name)
            if name not in present and name in by_name:
                pending.extend(by_name[name].needs)
                pending.extend([n for n in by_name[name].sized_like if n in present][:1])
        return needed


def bind_defaults(table: Table, snapshot: Snapshot, environment: Environment) -> DefaultColumns:
    """Bind the default expressions and constraints of a table."""
    scope = BindScope(snapshot=snapshot, database=table.database, environment=environment)
    columns = []
    for column in table.columns:
        if column.default_kind == "ALIAS":
            continue
        expression = None
        if column.default:
            expression = bind_expression(parse_expression(column.default), table, scope)
        sized_like = _sized_like(column, table) if expression is None else ()
        columns.append(
            DefaultColumn(column.name, column.type, column.stored, expression, sized_like)
        )
    constraints = tuple(
        CheckConstraint(name, text, bind_expression(parse_expression(text), table, scope))
        for name, text in table.constraints
    )
    return DefaultColumns(tuple(columns), constraints)


def _sized_like(column: Column, table: Table) -> tuple[str, ...]:
    """Return the other arrays of the column's nested structure, the oldest first.

    A part with any array of the structure has the oldest one."""
    structure, dot, _ = column.name.partition(".")
    if not dot or not isinstance(column.type, Array):
        return ()
    others = [
        c
        for c in table.stored_columns
        if c.id != column.id and isinstance(c.type, Array) and c.name.startswith(f"{structure}.")
    ]
    return tuple(c.name for c in sorted(others, key=lambda c: c.since))


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a part (`numbers` None: all), and their number of rows."""

    reader: PartReader
    numbers: Sequence[int] | None
    rows: int


def read_filled(
    part: RowGroups,
    table: Table,
    names: Sequence[str],
    defaults: Callable[[], DefaultColumns],
    environment: Environment,
    *,
    coded: Collection[str] = (),
    use_threads: bool = False,
) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Read the named stored columns of a part's row groups.

    Columns younger than the part have their defaults, evaluated over the part's other columns.
    `defaults` is called only where there are any. Columns in `coded` may come as dictionaries."""
    reader = part.reader
    stored = reader.read(names, part.numbers, coded=coded, use_threads=use_threads)
    columns = {name: stored.column(name) for name in stored.column_names}
    if len(columns) == len(set(names)):
        return columns
    table_defaults = defaults()
    missing = [name for name in names if name not in columns]
    present = {c.name for c in table.stored_columns if reader.has_column(c.name)}
    inputs = sorted(table_defaults.needed_for(missing, present) & present)
    extra = reader.read(inputs, part.numbers, use_threads=use_threads)
    given = {name: single_chunk(extra.column(name)) for name in extra.column_names}
    full = table_defaults.complete(given, part.rows, environment, names=missing)
    return {name: columns[name] if name in columns else full[name] for name in names}


def cached_defaults(
    table: Table, snapshot: Snapshot, environment: Environment, cache: BoundedCache[object]
) -> DefaultColumns:
    """Return the defaults of a table from the store's cache.

    The key has the columns too: an ALTER reads through versions that may never be committed."""
    key = (table.id, table.version, table.columns, environment.zone)
    defaults = cache.get(key)
    if not isinstance(defaults, DefaultColumns):
        defaults = bind_defaults(table, snapshot, environment)
        cache.put(key, defaults)
    return defaults


def _arrays_of_defaults(data_type: Array, like: pa.Array) -> pa.Array:
    """Return arrays as long as those of `like`, filled with the default of the element's type."""
    sizes = like.value_lengths().to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    values = as_array(default_value(data_type.inner), int(offsets[-1]))
    return pa.ListArray.from_arrays(pa.array(offsets), values).cast(data_type.arrow)


def _value(
    column: DefaultColumn,
    full: Mapping[str, pa.Array],
    rows: int,
    environment: Environment,
    storing: bool,
) -> pa.Array:
    """Return the column's default for each row, computed from the columns in `full`.

    Without an expression it is the type's default; an Array takes the lengths of a sibling column.
    `storing` casts as an INSERT does. An error of the data names the column.
    """
    if column.expression is None:
        like = next((name for name in column.sized_like if name in full), None)
        if like is not None and isinstance(column.type, Array):
            return _arrays_of_defaults(column.type, full[like])
        return as_array(default_value(column.type), rows)
    names = sorted(column.needs)
    if names:
        batch = pa.RecordBatch.from_arrays([full[n] for n in names], names=names)
    else:
        batch = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["_rows"])
    try:
        value = evaluate_array(column.expression, batch, environment)
        source = column.expression.type
        if storing:
            cast = store_column(value, source, column.type, environment)
        else:
            cast = cast_column(value, source, column.type, environment, strict=True)
    except DataError as error:
        message = f"Default of column {column.name}: {error.message}"
        raise type(error)(message, hint=error.hint) from error
    assert isinstance(cast, pa.Array)
    return cast
