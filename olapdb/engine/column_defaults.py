"""Columns that are not there: DEFAULT and MATERIALIZED expressions, else the type's default.

An INSERT leaves them out, or a part was written before they were added.  Both ask here, as do
merges, so a row reads the same whether its part was rewritten or not.
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
    """A cache of what can be made again."""

    def get_or_make(self, key: Hashable, make: Callable[[], Made]) -> Made: ...


@dataclass(frozen=True)
class DefaultColumn:
    """`expression` None: the type's own default; of an array of a nested structure as many of its
    element's as another one of the structure has, `sized_like`, the oldest first."""

    name: str
    type: DataType
    stored: bool
    expression: Expression | None
    sized_like: tuple[str, ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.expression is None else columns_of(self.expression)


@dataclass(frozen=True)
class CheckConstraint:
    """A condition that every row of an INSERT must fulfil; NULL does not."""

    name: str
    text: str
    condition: Expression


@dataclass(frozen=True)
class DefaultColumns:
    """How each column of a table is made where it was not given, in the table's order; and what
    rows must fulfil once it is."""

    columns: tuple[DefaultColumn, ...]
    constraints: tuple[CheckConstraint, ...] = ()

    @staticmethod
    def of(
        table: Table, snapshot: Snapshot, environment: Environment, cache: Remembers
    ) -> DefaultColumns:
        """Bound once for each version of the table."""
        key = ("defaults", table.id, table.version, environment.zone)
        return cache.get_or_make(key, lambda: bind_defaults(table, snapshot, environment))

    def complete(
        self,
        given: Mapping[str, pa.Array],
        rows: int,
        environment: Environment,
        wanted: Collection[str] | None = None,
        *,
        storing: bool = False,
    ) -> dict[str, pa.Array]:
        """The given columns and all missing ones (or those that `wanted` takes), of the columns'
        Arrow types.

        An expression may use given columns and other defaults, in any order; a circle raises
        IncorrectQuery, a failing expression a DataError that names the column.  `storing`: so does
        a value that the column cannot hold; what a part was written without is read as CAST.
        """
        full = dict(given)
        missing = [c for c in self.columns if c.name not in full]
        if wanted is not None:
            taken = self.needed_for(wanted, full.keys())
            missing = [c for c in missing if c.name in taken]
        while missing:
            ready = [c for c in missing if c.needs <= full.keys()]
            if not ready:
                names = ", ".join(c.name for c in missing)
                raise IncorrectQuery(f"The defaults of these columns need each other: {names}.")
            for column in ready:
                full[column.name] = _value(column, full, rows, environment, storing)
            missing = [c for c in missing if c.name not in full]
        return full

    def needed_for(self, wanted: Collection[str], there: Collection[str]) -> set[str]:
        """The wanted columns and all that their defaults are computed from; of columns in `there`
        the value is known."""
        by_name = {c.name: c for c in self.columns}
        found: set[str] = set()
        waiting = list(wanted)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            if name not in there and name in by_name:
                waiting.extend(by_name[name].needs)
                waiting.extend([n for n in by_name[name].sized_like if n in there][:1])
        return found


def bind_defaults(table: Table, snapshot: Snapshot, environment: Environment) -> DefaultColumns:
    scope = BindScope(snapshot=snapshot, database=table.database, environment=environment)
    made = []
    for column in table.columns:
        if column.default_kind == "ALIAS":
            continue
        expression = None
        if column.default:
            expression = bind_expression(parse_expression(column.default), table, scope)
        sized_like = _sized_like(column, table) if expression is None else ()
        made.append(DefaultColumn(column.name, column.type, column.stored, expression, sized_like))
    constraints = tuple(
        CheckConstraint(name, text, bind_expression(parse_expression(text), table, scope))
        for name, text in table.constraints
    )
    return DefaultColumns(tuple(made), constraints)


def _sized_like(column: Column, table: Table) -> tuple[str, ...]:
    """The other arrays of the column's nested structure, the oldest first: a part that holds any of
    them holds that one."""
    structure, dot, _ = column.name.partition(".")
    if not dot or not isinstance(column.type, Array):
        return ()
    others = [
        c
        for c in table.stored_columns
        if c.id != column.id and isinstance(c.type, Array) and c.name.startswith(f"{structure}.")
    ]
    return tuple(c.name for c in sorted(others, key=lambda c: c.since))


def read_filled(
    reader: PartReader,
    table: Table,
    names: Sequence[str],
    row_groups: Sequence[int] | None,
    rows: int,
    defaults: Callable[[], DefaultColumns],
    environment: Environment,
    *,
    coded: Collection[str] = (),
    use_threads: bool = False,
) -> dict[str, pa.ChunkedArray | pa.Array]:
    """The named stored columns of `rows` rows; those that the part is too old to hold have their
    defaults, evaluated over the part's other columns. `defaults` is asked only then."""
    found = reader.read(names, row_groups, coded=coded, use_threads=use_threads)
    columns = {name: found.column(name) for name in found.column_names}
    if len(columns) == len(set(names)):
        return columns
    made = defaults()
    missing = [name for name in names if name not in columns]
    has = {c.name for c in table.stored_columns if reader.has_column(c.name)}
    held = sorted(made.needed_for(missing, has) & has)
    extra = reader.read(held, row_groups, use_threads=use_threads)
    given = {name: single_chunk(extra.column(name)) for name in extra.column_names}
    full = made.complete(given, rows, environment, wanted=missing)
    return {name: columns[name] if name in columns else full[name] for name in names}


def remembered_defaults(
    table: Table, snapshot: Snapshot, environment: Environment, cache: BoundedCache[object]
) -> DefaultColumns:
    """As `DefaultColumns.of`, kept in the store's cache; by the columns too, for an ALTER reads
    through versions that may never come to be."""
    key = (table.id, table.version, table.columns, environment.zone)
    kept = cache.get(key)
    if isinstance(kept, DefaultColumns):
        return kept
    made = bind_defaults(table, snapshot, environment)
    cache.put(key, made)
    return made


def _arrays_of_defaults(data_type: Array, like: pa.Array) -> pa.Array:
    """Arrays as long as those of `like`, of the default of their element's type."""
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
        named = type(error)(f"Default of column {column.name}: {error.message}", hint=error.hint)
        raise named from error
    assert isinstance(cast, pa.Array)
    return cast
