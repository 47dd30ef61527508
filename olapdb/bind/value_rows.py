"""The rows of values(): constants as columns of a structure, or of the types that they have in common."""

from __future__ import annotations

import decimal
from collections.abc import Iterable

import pyarrow as pa

from olapdb import errors, functions
from olapdb.bind import constants
from olapdb.bind.contracts import QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.structures import parse_structure
from olapdb.functions.base import Environment
from olapdb.functions.kernels.columns import from_scalars
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.types import (
    Array,
    Boolean,
    DataType,
    Decimal,
    Dynamic,
    Float,
    Integer,
    Map,
    String,
    Tuple,
    Variant,
    WideNumber,
    plain,
)


def bind_value_rows(
    queries: QueryBinder, source: sql.TableFunction, binder: ExpressionBinder
) -> tuple[list[tuple[str, ColumnRef]], plan.Values]:
    """Return the columns of `values('a UInt8, b String', (1, 'x'), …)`, and the node of its rows.

    Without a structure, as always in SQLStandardValues, the columns are c1, c2, … Raises TooFewArguments
    without arguments, NumberOfArgumentsDoesntMatch without rows, BadArguments for a row of another width
    than the structure, CannotExtractTableStructure for rows of several widths."""
    if not source.arguments:
        raise errors.TooFewArguments(f"{source.name} needs at least one row.")
    rows = [binder.bind(a) for a in source.arguments]
    structure = None if source.name == "SQLStandardValues" else _structure_of(rows)
    if structure is not None:
        rows = rows[1:]
    if not rows:
        raise errors.NumberOfArgumentsDoesntMatch("values needs at least one row.")
    is_whole = structure is not None and len(structure) == 1
    elements = [_row(row, source, is_whole=is_whole) for row in rows]
    width = len(structure) if structure else len(elements[0])
    for row in elements:
        if len(row) != width:
            kind = errors.BadArguments if structure else errors.CannotExtractTableStructure
            raise kind(f"A row of values has {len(row)} columns, not {width}.")
    if structure is None:
        types = [functions.common_type([row[i].type for row in elements]) for i in range(width)]
        structure = [(f"c{i + 1}", t) for i, t in enumerate(types)]
    environment = queries.scope.environment
    names: list[tuple[str, ColumnRef]] = []
    arrays, fields = [], []
    for i, (shown, data_type) in enumerate(structure):
        values = [_as_column(row[i], data_type, environment).value for row in elements]
        unique = queries.names.unique(shown)
        names.append((shown, ColumnRef(data_type, unique)))
        fields.append(plan.Field(unique, data_type))
        arrays.append(from_scalars(values, data_type.arrow))
    table = pa.Table.from_arrays(arrays, [f.name for f in fields])
    return names, plan.Values(tuple(fields), table)


def constant_text(expression: Expression) -> str | None:
    """Return the text of a constant string, None if it is anything else."""
    value = expression.value.as_py() if isinstance(expression, Constant) else None
    return value if isinstance(value, str) else None


def _structure_of(rows: list[Expression]) -> list[tuple[str, DataType]] | None:
    """Return the columns that the first argument of values() declares, None where it is a row.

    A text that is no structure, or that stands alone, is a row of one value, as in ClickHouse. Raises
    NotSupportedError for a structure with a type that olapdb lacks."""
    text = constant_text(rows[0]) if len(rows) > 1 else None
    if text is None:
        return None
    try:
        return parse_structure(text, with_defaults=True)
    except errors.NotSupportedError:
        raise
    except errors.Error:
        return None


def _row(row: Expression, source: sql.TableFunction, *, is_whole: bool) -> list[Constant]:
    """Return the values of one row of values(); a value that is no tuple is a row of one, and so is any
    with `is_whole`.

    Raises BadArguments if it is no constant."""
    if not isinstance(row, Constant):
        raise errors.BadArguments(f"The rows of {source.name} must be constants.")
    if isinstance(row.type, Tuple) and row.value.is_valid and not is_whole:
        return [Constant(t, v) for t, v in zip(row.type.elements, row.value.values(), strict=True)]
    return [row]


def _as_column(value: Constant, data_type: DataType, environment: Environment) -> Constant:
    """Return a value as one of a column's type; in a Variant a number takes the least type that holds it.

    Raises TypeMismatch for NULL, and for a text that spells no number, where the column takes neither;
    ArgumentOutOfBound for a number that the column cannot hold."""
    if isinstance(data_type, Dynamic | Variant):
        stored = functions.store_literals(value.value, value.type, data_type, environment)
        return Constant(data_type, stored)
    try:
        converted = constants.cast(value, data_type, environment, eager=True)
    except errors.CannotConvertType:
        if value.value.is_valid:
            raise
        raise errors.TypeMismatch(
            f"Cannot convert NULL to {data_type}.", hint=f"Write Nullable({data_type})."
        ) from None
    except errors.CannotParse:
        if not isinstance(plain(data_type), Integer | Float):
            raise
        raise constants.unparsable_number(value, data_type) from None
    except errors.DecimalOverflow:
        raise _out_of_bound(value, data_type) from None
    assert isinstance(converted, Constant)
    if not _holds(data_type, value.type, converted.value.as_py(), value.value.as_py()):
        raise _out_of_bound(value, data_type)
    return converted


def _out_of_bound(value: Constant, data_type: DataType) -> errors.ArgumentOutOfBound:
    """Return the error for a number that the column cannot hold."""
    number = value.value.as_py()
    shown = str(number) if isinstance(number, decimal.Decimal) else repr(number)
    return errors.ArgumentOutOfBound(
        f"Cannot convert value {shown} from {value.type}: it cannot be represented as {data_type}.",
        hint="Give the column a type that holds the value.",
    )


def _holds(data_type: DataType, source: DataType, after: object, before: object) -> bool:
    """Return whether a value, `before` of the type `source`, is still the same number `after` a cast."""
    if after is None or before is None:
        return True
    match plain(data_type), plain(source):
        case Array(inner), Array(given):
            return _all_hold([inner], [given], _elements(after), _elements(before))
        case Map(key, value), Map(given_key, given_value):
            pairs = zip(_elements(after), _elements(before), strict=False)
            kinds, given_kinds = [key, value], [given_key, given_value]
            return all(_all_hold(kinds, given_kinds, _elements(a), _elements(b)) for a, b in pairs)
        case Tuple(elements=kinds), Tuple(elements=given_kinds):
            return _all_hold(kinds, given_kinds, _elements(after), _elements(before))
        case Boolean(), _:
            return True
        case ((Integer() | WideNumber() as kind), (Integer() | WideNumber() as given_kind)):
            return _integer(before, given_kind) == _integer(after, kind)
        case Decimal(precision=precision, scale=scale), Integer() as given_kind:
            return abs(_integer(before, given_kind)) < int(10 ** (precision - scale))
        case Integer(), Float() | String():
            return bool((int(before) if isinstance(before, str) else before) == after)
        case _:
            return True


def _all_hold(
    kinds: Iterable[DataType], given: Iterable[DataType], after: list[object], before: list[object]
) -> bool:
    """Return whether all elements of a value are held; the kinds of an Array's are one for all."""
    types = list(zip(kinds, given, strict=False))
    return all(
        _holds(*types[at % len(types)], now, then)
        for at, (now, then) in enumerate(zip(after, before, strict=False))
    )


def _elements(value: object) -> list[object]:
    """Return the elements of an Array, a Map as pairs, a tuple or a struct as Python has them."""
    return list(value.values()) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]


def _integer(value: object, kind: Integer | WideNumber) -> int:
    """Return an integer's number. Python has that of a wide one as the decimal of the same bits, which have a sign."""
    number = int(str(value))
    return number if kind.signed else number % (1 << kind.bits)
