"""Conversion of Python values to columns: the parameters of an INSERT, and mappings of lists.

A value means the same as one parameter, as one of thousands in executemany(), and in a mapping. It
is cast as INSERT casts a literal of its type. A value that the column cannot hold (an integer too
large, a date out of range, a text that does not parse) raises an error that names column and row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from olapdb.bind.parameters import python_array, type_of
from olapdb.errors import BadArguments, CannotConvertType, DataError, NumberOfColumnsDoesntMatch
from olapdb.functions import cast_column, store_column, store_literals
from olapdb.functions.base import Environment
from olapdb.ingest.plain_arrays import type_of_arrow
from olapdb.model.schema import Column, Table
from olapdb.types import (
    NOTHING,
    Array,
    Boolean,
    DataType,
    Dynamic,
    Float,
    Integer,
    Json,
    Nullable,
    String,
    Tuple,
    Variant,
    make_nullable,
    plain,
)

_NULL = Nullable(NOTHING)
Cast: TypeAlias = Callable[[pa.Array, DataType, DataType, Environment], pa.Array]


def python_column(
    column: Column, values: Sequence[object], environment: Environment, *, lossy: bool = False
) -> pa.Array:
    """Return the values as an array of the column's type, made Nullable; None becomes NULL.

    The INSERT decides what NULL means in a column that is not Nullable. Raises DataError, with its
    row, for a value that does not fit. `lossy` accepts every value that CAST converts.
    """
    target = make_nullable(column.type)
    cast = partial(cast_column, strict=True) if lossy else store_column
    if isinstance(target, Dynamic | Variant):
        cast = store_literals
    if isinstance(plain(target), Json):
        values = [json.dumps(v, default=str) if isinstance(v, dict) else v for v in values]
    try:
        array = _same_class_array(values, column.type, target, lossy)
        if array is None and _holds_records(column.type):
            array = _record_array(values, target, environment, cast)
        return _cast_by_type(values, target, environment, cast) if array is None else array
    except DataError as error:
        location = f"Column {column.name}" + ("" if error.row is None else f", row {error.row + 1}")
        error.message = f"{location}: {error.message}"
        raise


def mapping_columns(
    table: Table,
    data: Mapping[str, Any],
    names: Sequence[str] | None,
    environment: Environment,
    *,
    lossy: bool = False,
) -> tuple[pa.Table, list[DataType]]:
    """Return a mapping of columns as a table, and the types of its columns.

    Lists and tuples are Python values; other values are Arrow or NumPy arrays. `names` replaces the
    mapping's keys by position. Raises NumberOfColumnsDoesntMatch, BadArguments for columns of
    different lengths, and the errors of `python_column`.
    """
    if names is not None and len(names) != len(data):
        raise NumberOfColumnsDoesntMatch(
            f"The INSERT takes {len(names)} columns, its data have {len(data)}.",
            hint="Name as many columns as the data have.",
        )
    arrays: list[pa.Array | pa.ChunkedArray] = []
    types: list[DataType] = []
    names = list(data) if names is None else list(names)
    for name, values in zip(names, data.values(), strict=True):
        column = table.column(name)
        if isinstance(values, list | tuple) and column is not None:
            arrays.append(python_column(column, values, environment, lossy=lossy))
            types.append(make_nullable(column.type))
            continue
        arrays.append(_arrow_column(name, values))
        types.append(type_of_arrow(arrays[-1].type))
    lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise BadArguments(f"The columns differ in their number of values: {counts}.")
    return pa.Table.from_arrays(arrays, names=names), types


def _arrow_column(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    """Return the values as an Arrow array; raise BadArguments if Arrow cannot read them."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
        raise BadArguments(
            f"Column {name} cannot be read as Arrow: {error}.",
            hint="Give a list, an Arrow or a NumPy array of values of one type.",
        ) from error


def _same_class_array(
    values: Sequence[object], column: DataType, target: DataType, lossy: bool
) -> pa.Array | None:
    """Return the values as an array if all have the column's Python class, else None. Raise
    CannotConvertType for an integer out of range, unless `lossy`."""
    classes = frozenset(map(type, values)) - {type(None)}
    if not classes:
        return pa.nulls(len(values), target.arrow)
    match plain(column):
        case Integer() if classes == {int}:
            try:
                return pa.array(values, target.arrow)
            except (pa.ArrowInvalid, OverflowError):
                if lossy:
                    return None
                raise _out_of_range(values, column) from None
        case Float(bits=64) if classes == {float}:
            return pa.array(values, target.arrow)
        case Boolean() if classes == {bool}:
            return pa.array(values, target.arrow)
        case String() if classes == {str}:
            try:
                return pa.array(values, target.arrow)
            except UnicodeError:  # `_cast_by_type` raises the error that names the value
                return None
        case _:
            return None


def _out_of_range(values: Sequence[object], column: DataType) -> DataError:
    """Return the error about the first value out of range, which is searched only now."""
    for row, value in enumerate(values):
        try:
            pa.array([value], column.arrow)
        except (pa.ArrowInvalid, OverflowError):
            return CannotConvertType(f"{value!r} is out of the range of {column}.").at_row(row)
    return CannotConvertType(f"A value is out of the range of {column}.")


def _holds_records(data_type: DataType) -> bool:
    """Return whether the type is a Tuple, or Arrays of one: its values may be dicts by field
    name."""
    inner = plain(data_type)
    return isinstance(inner, Tuple) or (isinstance(inner, Array) and _holds_records(inner.inner))


def _record_array(
    values: Sequence[object], target: DataType, environment: Environment, cast: Cast
) -> pa.Array | None:
    """Return dicts by field name, as Arrow reads them, as an array of the target type; None if the
    values are tuples."""
    try:
        array = pa.array(values)
        source = type_of_arrow(array.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError, CannotConvertType):
        return None
    if not _holds_records(source):
        return None
    return cast(array, source, target, environment)


def _float_of(value: object) -> object:
    """Return an integer of more than 64 bits as a float; other values unchanged.

    Raises CannotConvertType for an integer that is larger than any float."""
    if type(value) is not int or -(2**63) <= value < 2**64:
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise CannotConvertType("An integer is larger than any float.") from error


def _cast_by_type(
    values: Sequence[object], target: DataType, environment: Environment, cast: Cast
) -> pa.Array:
    """Return the values as an array of the target type: cast all values of one type at once, then
    restore the order."""
    groups: dict[DataType, list[int]] = {}
    if isinstance(plain(target), Float):
        values = [_float_of(value) for value in values]
    for row, value in enumerate(values):
        groups.setdefault(type_of(value), []).append(row)
    pieces: list[pa.Array] = []
    order: list[int] = []
    for data_type, rows in groups.items():
        if data_type == _NULL:
            pieces.append(pa.nulls(len(rows), target.arrow))
            order += rows
            continue
        try:
            array = python_array([values[row] for row in rows], data_type, environment)
            piece = cast(array, data_type, target, environment)
        except DataError as error:
            raise error.at_row(rows[error.row or 0]) from None
        pieces.append(piece)
        order += rows
    if len(pieces) == 1:
        return pieces[0]
    positions = [0] * len(order)
    for position, row in enumerate(order):
        positions[row] = position
    return pa.concat_arrays(pieces).take(pa.array(positions, pa.int64()))
