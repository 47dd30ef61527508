"""Values of missing columns: DEFAULT and MATERIALIZED expressions, else the type's default.

A column is missing if an INSERT omits it, or if a part was written before it was added.  INSERT,
reads and merges all use this module, so a row reads the same before and after its part is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_expression
from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import DataError, IncorrectQuery
from olapdb.functions import cast_column, default_value, store_default
from olapdb.functions.base import Environment
from olapdb.functions.kernels.columns import as_array
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression, columns_of
from olapdb.records import dataclass
from olapdb.sql.parser import parse_expression
from olapdb.storage.cache import BoundedCache
from olapdb.storage.reader import PartReader
from olapdb.types import Array, DataType
from olapdb.types.arrow_values import from_numpy, to_numpy

Made = TypeVar("Made")


class Remembers(Protocol):
    """A cache of values that can be computed again."""

    def get_or_make(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the cached value of the key; if there is none, cache and return `make()`."""


@dataclass(frozen=True)
class DefaultColumn:
    """The default of one column: `expression` computes it; None means the type's default.

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
        key = ("defaults", table.id, table.version, environment.of_warehouse.zone)
        return cache.get_or_make(key, lambda: bind_defaults(table, snapshot, environment))

    def complete(
        self,
        given: Mapping[str, pa.Array],
        rows: int,
        environment: Environment,
        names: Collection[str] | None = None,
        *,
        storing: bool = False,
        holed: Mapping[str, pa.Array] | None = None,
    ) -> dict[str, pa.Array]:
        """Return the given columns and all missing ones, in the columns' Arrow types.

        Columns of `holed`, which are not in `given`, get their default where they are NULL, and defaults that read
        them read the filled column.

        With `names`, only these columns and those that their defaults read are added. An expression
        may use given columns and other defaults, in any order. Raises IncorrectQuery for a circle of
        defaults, and a DataError that names the column for a failing expression. `storing` (INSERT):
        a value that the column cannot hold raises too; otherwise it is converted as by CAST.
        """
        values = dict(given)
        missing = [default for default in self.columns if default.name not in values]
        if names is not None:
            needed = self.needed_for(names, values.keys())
            missing = [default for default in missing if default.name in needed]
        while missing:
            computable = [default for default in missing if default.needs <= values.keys()]
            if not computable:
                cycle = ", ".join(default.name for default in missing)
                raise IncorrectQuery(f"The defaults of these columns need each other: {cycle}.")
            for column in computable:
                value = _value(column, values, rows, environment, storing)
                if holed is not None and (array := holed.get(column.name)) is not None:
                    value = pc.if_else(pc.is_valid(array), array, value)
                values[column.name] = value
            missing = [default for default in missing if default.name not in values]
        return values

    def needed_for(self, names: Collection[str], present: Collection[str]) -> set[str]:
        """Return these columns and all columns that the defaults of missing ones read."""
        by_name = {column.name: column for column in self.columns}
        needed: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            needed.add(name)
            if name not in present and name in by_name:
                pending.extend(by_name[name].needs)
                pending.extend(
                    [sibling for sibling in by_name[name].sized_like if sibling in present][:1]
                )
        return needed


def bind_defaults(table: Table, snapshot: Snapshot, environment: Environment) -> DefaultColumns:
    """Bind the default expressions and constraints of a table."""
    own = environment.of_warehouse
    scope = BindScope(snapshot=snapshot, database=table.database, environment=own)
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
        for name, text in table.checks
    )
    return DefaultColumns(tuple(columns), constraints)


def _sized_like(column: Column, table: Table) -> tuple[str, ...]:
    """Return the other arrays of the column's nested structure, the oldest first.

    A part that has any array of the structure has the oldest one."""
    structure, separator, _ = column.name.partition(".")
    if not separator or not isinstance(column.type, Array):
        return ()
    siblings = [
        sibling
        for sibling in table.stored_columns
        if sibling.id != column.id
        and isinstance(sibling.type, Array)
        and sibling.name.startswith(f"{structure}.")
    ]
    return tuple(sibling.name for sibling in sorted(siblings, key=lambda sibling: sibling.since))


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a part (`numbers` None: all), and their number of rows; `shared` names the
    columns that may come in the compact form of the column cache."""

    reader: PartReader
    numbers: Sequence[int] | None
    rows: int
    shared: Collection[str] = ()


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
    `defaults` is called only if a column is missing. Columns in `coded` may come as
    dictionaries."""
    reader = part.reader
    stored_table = reader.read(
        names, part.numbers, coded=coded, shared=part.shared, use_threads=use_threads
    )
    columns = {name: stored_table.column(name) for name in stored_table.column_names}
    if len(columns) == len(set(names)):
        return columns
    table_defaults = defaults()
    missing = [name for name in names if name not in columns]
    stored_names = {
        column.name for column in table.stored_columns if reader.has_column(column.name)
    }
    input_names = sorted(table_defaults.needed_for(missing, stored_names) & stored_names)
    input_table = reader.read(input_names, part.numbers, use_threads=use_threads)
    inputs = {name: single_chunk(input_table.column(name)) for name in input_table.column_names}
    completed = table_defaults.complete(inputs, part.rows, environment, names=missing)
    return {name: columns[name] if name in columns else completed[name] for name in names}


def cached_defaults(
    table: Table, snapshot: Snapshot, environment: Environment, cache: BoundedCache[object]
) -> DefaultColumns:
    """Return the defaults of a table from the store's cache.

    The key has the columns too: an ALTER reads through versions that may never be committed."""
    key = (table.id, table.version, table.columns, environment.of_warehouse.zone)
    defaults = cache.get(key)
    if not isinstance(defaults, DefaultColumns):
        defaults = bind_defaults(table, snapshot, environment)
        cache.put(key, defaults)
    return defaults


def _arrays_of_defaults(data_type: Array, like: pa.Array) -> pa.Array:
    """Return arrays as long as those of `like`, filled with the default of the element's type."""
    sizes = to_numpy(like.value_lengths())
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    values = as_array(default_value(data_type.inner), int(offsets[-1]))
    return pa.ListArray.from_arrays(from_numpy(offsets), values).cast(data_type.arrow)


def _value(
    column: DefaultColumn,
    full: Mapping[str, pa.Array],
    rows: int,
    environment: Environment,
    storing: bool,
) -> pa.Array:
    """Return the default of the column for each row; `full` has the columns that it reads."""
    if column.expression is None:
        sibling_name = next((name for name in column.sized_like if name in full), None)
        if sibling_name is not None and isinstance(column.type, Array):
            return _arrays_of_defaults(column.type, full[sibling_name])
        return as_array(default_value(column.type), rows)
    names = sorted(column.needs)
    if names:
        batch = pa.RecordBatch.from_arrays(
            [full[needed_name] for needed_name in names], names=names
        )
    else:
        batch = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["_rows"])
    try:
        environment = environment.of_warehouse  # a part that lacks the column has the same values
        value = evaluate_array(column.expression, batch, environment)
        source = column.expression.type
        if storing:
            cast = store_default(value, source, column.type, environment)
        else:
            cast = cast_column(value, source, column.type, environment, strict=True)
    except DataError as error:
        message = f"Default of column {column.name}: {error.message}"
        raise type(error)(message, hint=error.hint) from error
    assert isinstance(cast, pa.Array)
    return cast
